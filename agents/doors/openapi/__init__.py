"""The OpenAPI document: what it contains is declared at the methods, see `rest.operations`."""
