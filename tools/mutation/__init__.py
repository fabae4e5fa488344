"""Damaged copies of models, the same for the same seed and number: the parts of ``tools.fuzz``.

``plan`` numbers them. ``raw`` changes a file's bytes, and the offsets, lengths and vtables that ``layout`` finds in it;
``fields`` changes decoded numbers and texts; ``tables`` moves whole tables. ``seeds`` are the models to start from.
"""
