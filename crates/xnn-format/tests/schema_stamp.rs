//! Tests that the generated code matches the schemas.

use xnn_testing::assert_schema_stamp;

#[test]
fn generated_code_is_up_to_date() {
    assert_schema_stamp("xnn_graph", include_str!("../src/generated/xnn_graph.rs"));
    assert_schema_stamp("xnn_extension", include_str!("../src/generated/xnn_extension.rs"));
}
