"""Path counts forward and Brandes' dependencies backward."""
