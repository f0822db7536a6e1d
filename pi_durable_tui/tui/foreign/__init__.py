"""What others made, for the screen: colours that tools print, pictures in words. PURE."""
