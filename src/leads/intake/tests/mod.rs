//! The intake on a file: x.
