"""The input of the model: the head of the prompt, the conversation, and its length."""
