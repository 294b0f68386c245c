//! The builder's pages of change sets.
