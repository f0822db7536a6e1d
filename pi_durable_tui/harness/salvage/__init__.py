"""What a conversation needs to be whole again after records of it were lost. PURE: sound records in, a consistent store out."""
