//! Tests that the generated code matches the schemas.

use xnn_testing::assert_schema_stamp;

#[test]
fn generated_code_is_up_to_date() {
    let module = include_str!("../src/generated/executorch_program.rs");
    assert_schema_stamp("executorch_program", module);
}
