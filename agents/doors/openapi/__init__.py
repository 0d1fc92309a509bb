"""The OpenAPI document. Methods declare its contents with `rest.operations`."""
