//! How much a model can be told, and what is left out when it is too much.
