//! Tests that the generated code matches the schemas.

use xnn_testing::assert_schema_stamp;

#[test]
fn generated_code_is_up_to_date() {
    assert_schema_stamp("tflite", include_str!("../src/generated/tflite.rs"));
    assert_schema_stamp("circle", include_str!("../src/generated/circle.rs"));
    assert_schema_stamp("tflite_metadata", include_str!("../src/generated/metadata.rs"));
}
