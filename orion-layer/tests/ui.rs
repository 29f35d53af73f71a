//! Programs that must not compile, and the compiler's messages.

#[test]
fn errors_stand_at_the_right_token() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
