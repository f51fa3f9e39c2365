//! The document, the examples, and the database that they are taken from.

pub mod document;
pub mod example;
pub mod story;
