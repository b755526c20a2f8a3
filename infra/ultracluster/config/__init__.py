"""What a user asks for: the settings models, the rules about them, and the loader of environment files."""
