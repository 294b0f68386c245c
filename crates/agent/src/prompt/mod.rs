//! What a model is told before it begins: eight layers in one order.
