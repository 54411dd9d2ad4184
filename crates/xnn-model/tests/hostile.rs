//! Damaged files result in an error or a model, not in a panic, a hang or excessive memory.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a panic is a failed test")]

use xnn_model::metadata::{
    AssociatedFile, AssociatedFileType, AssociatedFiles, ModelMetadata, SubGraphMetadata,
    TensorMetadata,
};
use xnn_model::op::{Conv2dOptions, Op, WhileOptions};
use xnn_model::{DType, Dialect, ErrorKind, Model, ModelLimits, Quantization, write};
use xnn_testing::{GraphBuilder, ModelBuilder, Random, shared_dir};

/// A model with all parts that the reader reads.
fn sample(dialect: Dialect) -> Vec<u8> {
    let mut main = GraphBuilder::new("main");
    let x = main.input("x", DType::I8, &[1, 4, 4, 2]);
    let weights = main.constant_i8("weights", &[3, 1, 1, 2], &[1, 2, 3, 4, 5, 6]);
    let bias = main.constant_i32("bias", &[3], &[7, 8, 9]);
    let y = main.tensor("y", DType::I8, &[1, 4, 4, 3]);
    let z = main.tensor("z", DType::I8, &[1, 4, 4, 3]);
    main.quantize(x, 0.5, 1).quantize(y, 0.25, -3).quantize(z, 0.25, -3);
    main.quantize_per_axis(weights, &[0.1, 0.2, 0.3], 0);
    main.quantize_per_axis(bias, &[0.05, 0.1, 0.15], 0);
    let conv = Conv2dOptions { stride_w: 1, stride_h: 1, ..Default::default() };
    main.op(Op::Conv2d(conv), &[x, weights, bias], &[y]);
    main.op(Op::While(WhileOptions { cond_subgraph: 1, body_subgraph: 1 }), &[y], &[z]).output(z);

    let mut called = GraphBuilder::new("called");
    let only = called.input("only", DType::I8, &[1, 4, 4, 3]);
    called.output(only);

    let files = AssociatedFiles::pack([("labels.txt", &b"a\nb\nc\n"[..])]).unwrap();
    let mut model = ModelBuilder::new(dialect)
        .subgraph(main)
        .subgraph(called)
        .signature("serving_default", 0, &[("x", x)], &[("z", z)])
        .metadata("notes", &b"some notes"[..])
        .build();
    model.set_metadata(&described(), files);
    match dialect {
        Dialect::Tflite => write::to_tflite(&model),
        Dialect::Circle => write::to_circle(&model),
    }
    .unwrap()
}

/// Metadata that refer to a file.
fn described() -> ModelMetadata {
    let labels = AssociatedFile {
        name: "labels.txt".into(),
        r#type: AssociatedFileType::TensorAxisLabels,
        ..Default::default()
    };
    let output = TensorMetadata { associated_files: vec![labels], ..Default::default() };
    let main = SubGraphMetadata {
        input_tensor_metadata: vec![TensorMetadata::default()],
        output_tensor_metadata: vec![output],
        ..Default::default()
    };
    ModelMetadata { subgraph_metadata: vec![main], ..Default::default() }
}

/// Reads a file, its metadata and its associated files.
fn read_all(file: Vec<u8>) {
    let Ok(model) = Model::from_bytes(file) else { return };
    if let Ok(Some(metadata)) = ModelMetadata::of_model(&model, &ModelLimits::default()) {
        drop((metadata.problems(&model), metadata.to_json()));
    }
    for (name, _) in model.files.iter() {
        drop(model.files.read(name));
    }
}

/// A few small real models, if available.
fn real_files() -> Vec<Vec<u8>> {
    const NAMES: [&str; 5] = [
        "micro_speech_int8.tflite",
        "onevscode_test_onnx.circle",
        "small/tflite__converter__sparsity__testdata__sparse_tensor.bin.tflite",
        "small/tflite__testdata__nested_while.bin.tflite",
        "small/tflite__testdata__with_metadata.bin.tflite",
    ];
    let Some(dir) = shared_dir("models") else { return Vec::new() };
    NAMES.iter().map(|name| std::fs::read(dir.join(name)).unwrap()).collect()
}

fn files() -> Vec<Vec<u8>> {
    let mut files = real_files();
    files.push(sample(Dialect::Tflite));
    files.push(sample(Dialect::Circle));
    files
}

#[test]
fn truncated_files_are_refused() {
    for file in files() {
        for len in (0..file.len()).step_by(64) {
            if let Ok(model) = Model::from_bytes(file[..len].to_vec()) {
                // Only padding, unreferenced bytes and the archive may be missing.
                let mut whole = Model::from_bytes(file.clone()).unwrap();
                if model.files.is_empty() {
                    whole.files = AssociatedFiles::default();
                }
                assert!(model == whole, "cut at {len}");
            }
        }
    }
}

#[test]
fn flipped_bytes_do_not_panic() {
    let mut random = Random::new(1);
    for file in files() {
        for _ in 0..3000 {
            let mut damaged = file.clone();
            for _ in 0..=random.below(3) {
                let place = random.below(damaged.len());
                damaged[place] ^= 1 << random.below(8);
            }
            read_all(damaged);
        }
    }
}

#[test]
fn random_words_in_place_of_offsets_do_not_panic() {
    const WORDS: [u32; 8] = [0, 1, 4, 0x7f, 0x7fff_ffff, 0x8000_0000, 0xffff_fffc, 0xffff_ffff];
    for file in files() {
        let step = (file.len() / 2000).max(1) * 4;
        for place in (0..file.len() - 4).step_by(step) {
            for word in WORDS {
                let mut damaged = file.clone();
                damaged[place..place + 4].copy_from_slice(&word.to_le_bytes());
                read_all(damaged);
            }
        }
    }
}

#[test]
fn mismatches_of_metadata_are_listed() {
    let sample = || Model::from_bytes(sample(Dialect::Tflite)).unwrap();
    assert_eq!(described().problems(&sample()), [""; 0]);
    let problem = |change: fn(&mut ModelMetadata)| {
        let mut metadata = described();
        change(&mut metadata);
        metadata.problems(&sample()).join("; ")
    };
    let missing = |m: &mut ModelMetadata| {
        m.associated_files.push(AssociatedFile { name: "gone".into(), ..Default::default() });
    };
    assert_eq!(problem(missing), "it refers to the file \"gone\", which the model does not have");
    let graphs = |m: &mut ModelMetadata| m.subgraph_metadata.resize(3, Default::default());
    assert!(problem(graphs).starts_with("it describes 3 subgraphs, but the model has 2"));
    let tensors = |m: &mut ModelMetadata| m.subgraph_metadata[0].input_tensor_metadata.clear();
    assert_eq!(problem(tensors), "it describes 0 inputs of subgraph 0, which has 1");
    assert!(problem(|m| m.min_parser_version = "1.6.0".into()).contains("schema version 1.6.0"));
    assert!(problem(|m| m.min_parser_version = "new".into()).contains("\"new\" is not a version"));
    assert_eq!(problem(|m| m.min_parser_version = "1.5".into()), "");
    let mut other = sample();
    other.files = AssociatedFiles::pack([("labels.txt", &b"a\nb\n"[..])]).unwrap();
    assert_eq!(
        described().problems(&other),
        ["output 0 (\"\"): \"labels.txt\" has 2 labels, which match no dimension of [1, 4, 4, 3]"]
    );
    other.files = AssociatedFiles::pack([("labels.txt", &b"\xff"[..])]).unwrap();
    assert!(described().problems(&other)[0].contains("not valid UTF-8"));
}

#[test]
fn other_formats_are_refused() {
    let error = |bytes: &'static [u8]| Model::from_bytes(bytes).unwrap_err();
    assert!(matches!(error(b"").kind(), ErrorKind::TooShort(0)));
    assert!(matches!(error(b"TFL3TFL").kind(), ErrorKind::TooShort(7)));
    assert!(matches!(error(b"plain text, nothing more").kind(), ErrorKind::Identifier(_)));
    let empty = error(b"\0\0\0\0TFL3\0\0\0\0\0\0\0\0");
    assert!(matches!(empty.kind(), ErrorKind::Version(0) | ErrorKind::Flatbuffer(_)), "{empty}");
}

#[test]
fn errors_name_paths_that_cannot_be_opened() {
    let missing = Model::open("no/such/file.tflite").unwrap_err().to_string();
    assert!(missing.starts_with("no/such/file.tflite: "), "{missing}");
    let folder = Model::open(env!("CARGO_MANIFEST_DIR")).unwrap_err().to_string();
    assert!(folder.ends_with("is a directory"), "{folder}");
}

#[test]
fn limits_hold() {
    let file = sample(Dialect::Tflite);
    let with = |change: fn(&mut ModelLimits)| {
        let mut limits = ModelLimits::default();
        change(&mut limits);
        Model::from_bytes_with(file.clone(), &limits).map_err(|e| e.to_string())
    };
    assert!(with(|_| {}).is_ok());
    assert!(with(|l| l.max_rank = 4).is_ok());
    assert!(with(|l| l.max_rank = 3).unwrap_err().contains("number of dimensions is 4"));
    assert!(with(|l| l.max_tensor_bytes = 48).is_ok());
    assert!(with(|l| l.max_tensor_bytes = 47).unwrap_err().contains("limit of 47"));
    assert!(with(|l| l.max_tables = 10).unwrap_err().contains("too many tables"));
    assert!(with(|l| l.max_depth = 2).unwrap_err().contains("depth limit"));
}

/// Checks the sample model with a change.
fn check(change: impl FnOnce(&mut Model)) -> Result<(), String> {
    let mut model = Model::from_bytes(sample(Dialect::Tflite)).unwrap();
    change(&mut model);
    model.check(&ModelLimits::default()).map_err(|e| e.to_string())
}

/// Checks the sample model with a change of the first subgraph.
fn check_main(change: impl FnOnce(&mut xnn_model::Subgraph)) -> Result<(), String> {
    check(|m| change(std::sync::Arc::make_mut(&mut m.subgraphs[0])))
}

#[test]
fn errors_name_indices_out_of_range() {
    let error = check_main(|g| g.operators[0].inputs[0] = Some(5)).unwrap_err();
    assert_eq!(
        error,
        "subgraph 0: operator 0 (CONV_2D): its input is tensor 5, but the subgraph has 5"
    );
    assert!(check_main(|g| g.outputs[0] = 5).unwrap_err().contains("its output is tensor 5"));
    let callee = |g: &mut xnn_model::Subgraph| {
        g.operators[1].op = Op::While(WhileOptions { cond_subgraph: 0, body_subgraph: 2 });
    };
    assert!(check_main(callee).unwrap_err().contains("it calls subgraph 2, but the model has 2"));
    assert!(check(|m| m.signatures[0].subgraph = 2).unwrap_err().contains("serving_default"));
    assert!(check(|m| m.signatures[0].inputs[0].1 = 9).unwrap_err().contains("is tensor 9"));
}

#[test]
fn the_order_of_operators_is_checked() {
    let error = check_main(|g| g.operators.swap(0, 1)).unwrap_err();
    assert!(error.contains("operator 1 produces it: the operators are out of order"), "{error}");
    let error = check_main(|g| drop(g.operators.remove(0))).unwrap_err();
    assert!(error.contains("tensor 3 (\"y\"): is read, but nothing produces it"), "{error}");
    let error = check_main(|g| g.operators[1].outputs[0] = 3).unwrap_err();
    assert!(error.contains("written by another operator"), "{error}");
    assert!(check_main(|g| g.tensors[3].is_variable = true).is_err());
}

#[test]
fn constants_have_the_size_of_their_shape() {
    assert!(check_main(|g| g.tensors[1].shape = Some(vec![3, 2])).is_ok());
    let error = check_main(|g| g.tensors[2].shape = Some(vec![4])).unwrap_err();
    assert!(error.contains("its data has 12 bytes, but i32 of shape [4] take 16"), "{error}");
    assert!(check_main(|g| g.tensors[0].shape = Some(vec![usize::MAX, 2])).is_err());
}

#[test]
fn quantization_fits_the_shape() {
    let quantized = |n: usize, (zero_points, zero_point): (usize, i64), axis| {
        check_main(|g| {
            g.tensors[0].quantization = Some(Quantization::PerAxis {
                scales: vec![1.0; n].into(),
                zero_points: vec![zero_point; zero_points].into(),
                axis,
            });
        })
    };
    let scales = |n, axis| quantized(n, (n, 0), axis);
    assert!(scales(2, 3).is_ok());
    assert!(quantized(2, (2, 1), 3).is_ok());
    assert!(quantized(2, (3, 1), 3).unwrap_err().contains("do not fit the shape"));
    assert!(scales(2, 2).unwrap_err().contains("do not fit the shape"));
    assert!(scales(3, 3).unwrap_err().contains("do not fit the shape"));
    assert!(scales(2, 4).unwrap_err().contains("do not fit the shape"));
    let blocks = |scales, block_size| {
        check_main(|g| {
            let zero_points = None;
            g.tensors[1].quantization =
                Some(Quantization::Blockwise { scales, zero_points, block_size });
        })
    };
    assert!(blocks(2, 32).is_ok());
    assert!(blocks(2, 0).unwrap_err().contains("blocks of 0 elements"));
    assert!(blocks(9, 32).unwrap_err().contains("its scale is tensor 9"));
}
