"""The model's input: the head of the prompt, the conversation, and the number of tokens."""
