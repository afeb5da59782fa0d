//! To be written on its branch.
