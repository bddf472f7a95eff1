"""Choices, and arrays cut and put together: imported when one of them is called first."""
