"""The OpenAPI document. Methods declare their contents with `rest.operations`."""
