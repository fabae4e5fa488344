"""TensorFlow 1's variables, arrays, loops and branches as TensorFlow 2's; nothing that a graph of TensorFlow 2 has.

Only here may the nodes of a function form cycles.
"""
