//! The application `matrix_completion`: its parts, and the program with bad input.

#[allow(dead_code, reason = "the program's `main` and what only it uses")]
#[path = "../../src/main.rs"]
mod matrix_completion;

mod data;
mod modes;
mod parts;
mod program;
mod support;
