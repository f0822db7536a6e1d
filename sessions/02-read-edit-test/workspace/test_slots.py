import unittest

from slots import Span, free_spans

DAY = Span(9 * 60, 17 * 60)


class FreeSpansTest(unittest.TestCase):
    def test_a_day_without_meetings_is_free(self):
        self.assertEqual(free_spans(DAY, []), [DAY])

    def test_the_gaps_between_meetings_are_free(self):
        meetings = [Span(600, 660), Span(720, 780)]
        self.assertEqual(free_spans(DAY, meetings), [Span(540, 600), Span(660, 720), Span(780, 1020)])

    def test_a_call_during_a_workshop_frees_nothing(self):
        workshop, call = Span(600, 720), Span(630, 660)
        self.assertEqual(free_spans(DAY, [workshop, call]), [Span(540, 600), Span(720, 1020)])

    def test_meetings_that_touch_leave_no_gap(self):
        meetings = [Span(540, 600), Span(600, 1020)]
        self.assertEqual(free_spans(DAY, meetings), [])


if __name__ == "__main__":
    unittest.main()
