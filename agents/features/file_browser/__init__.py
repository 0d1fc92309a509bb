"""Browse the files of a conversation: a tree, previews, and a download of a whole directory."""
