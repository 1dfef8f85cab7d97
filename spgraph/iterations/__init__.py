"""The loops that algorithms are made of. They know semirings, masks and schedules, and no algorithm
by name.
"""
