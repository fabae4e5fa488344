"""Steps of recurrent layers in a subgraph.

``links`` says who makes and who reads a tensor, ``boxes`` and ``views`` which columns or step of another tensor it
holds, ``sums`` which products and constants it adds up.
"""
