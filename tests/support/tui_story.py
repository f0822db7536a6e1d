"""One small story that the pictures tell: a failing test is found, fixed and run again."""

from __future__ import annotations

from tests.support.tui_views import answer, result, thinking, user

DIFF = '''@@ -1,6 +1,7 @@
 def total(prices: list[float], *, discount: float = 0.0) -> float:
     """The sum of prices after the discount."""
-    return sum(prices) * discount
+    factor = 1.0 - discount
+    return sum(prices) * factor


 class Cart:'''

FINAL = """The discount was multiplied instead of **subtracted**. `total()` now keeps `1 - discount` of the sum:

```python
def total(prices: list[float], *, discount: float = 0.0) -> float:
    factor = 1.0 - discount  # what is left
    return sum(prices) * factor
```

What I checked:

1. the failing test passes,
2. the other *eleven* still do,
   - including the rounding ones

| file | change | tests |
|------|-------:|:-----:|
| `shop/cart.py` | +2 −1 | 12 ✓ |
| `tests/test_cart.py` | 0 | 12 ✓ |

> Discounts above 1 are still accepted; say so if that should be an error."""

ASKED = user(1, "The cart test fails since yesterday. Find out why and fix it.")
LOOKED = (
    answer(
        2, thinking("The test name says discount. Let me look at the cart first.\nThen run it."), "I'll look at the test and the code it tests.", stop="toolUse"
    ),
    result(3, "read", "read shop/cart.py", "\n".join(f"line {number}" for number in range(48)), took_ms=12),
    result(4, "read", "read tests/test_cart.py", "\n".join(f"line {number}" for number in range(61)), took_ms=9),
    result(
        5,
        "bash",
        "bash pytest -q tests/test_cart.py",
        "F...........\nE   assert 2.0 == 18.0\n1 failed, 11 passed in 0.21s\n[exit code 1]",
        is_error=True,
        took_ms=1_240,
        details={"exitCode": 1},
    ),
)
FIXED = (
    answer(6, "The discount is applied the wrong way round.", stop="toolUse"),
    result(7, "edit", "edit shop/cart.py", "ok", took_ms=9, arguments={"path": "shop/cart.py"}, details={"diff": DIFF, "added": 2, "removed": 1}),
    result(8, "bash", "bash pytest -q tests/test_cart.py", "............\n12 passed in 0.20s", took_ms=1_180),
)
ANSWERED = answer(9, FINAL)
STORY = (ASKED, *LOOKED, *FIXED, ANSWERED)
