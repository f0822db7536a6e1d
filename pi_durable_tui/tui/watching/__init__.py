"""Looking at a conversation without a hand in it: how sights reach the screen, and the app of `pidurable watch` (rules OB-2, OB-6)."""
