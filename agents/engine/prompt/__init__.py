"""What the model reads: the head of the prompt, the conversation, and its length."""
