"""Reductions as operators of PyTorch, with gradients: for autograd, torch.compile and tensors without data.

Calls of public functions that PyTorch must see come here, and those that samesum.torch routes.
"""
