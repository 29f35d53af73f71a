//! What must not compile, and what the compiler then says.

#[test]
fn errors_stand_at_the_right_token() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
