"""The program kills itself and looks at what is left: the promises of SPEC.md, checked on the machine at hand (rules PR-1, PR-5, PR-6, PR-10)."""
