//! Tests of metadata and associated files.

#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

use bytes::Bytes;

use super::*;
use crate::limits::ModelLimits;

/// Metadata with each table, union member and kind of field.
fn everything() -> ModelMetadata {
    let file = |name: &str, kind| AssociatedFile {
        name: name.into(),
        description: "a file".into(),
        r#type: kind,
        locale: "en-US".into(),
        version: "v2".into(),
    };
    let vocabulary = || vec![file("vocab.txt", AssociatedFileType::Vocabulary)];
    let content = |properties| {
        let range = Some(ValueRange { min: -1, max: 7 });
        Some(Content { content_properties: Some(properties), range })
    };
    let tensor = |name: &str, properties, process_units| TensorMetadata {
        name: name.into(),
        description: "what it is".into(),
        dimension_names: vec!["batch".into(), "width".into()],
        content: content(properties),
        process_units,
        stats: Some(Stats { max: vec![1.0, 0.1], min: vec![-1.0] }),
        associated_files: vec![file("labels.txt", AssociatedFileType::TensorAxisLabels)],
    };
    let image = ContentProperties::ImageProperties(ImageProperties {
        color_space: ColorSpaceType::Rgb,
        default_size: Some(ImageSize { width: 640, height: 480 }),
    });
    let boxes = ContentProperties::BoundingBoxProperties(BoundingBoxProperties {
        index: vec![1, 0, 3, 2],
        r#type: BoundingBoxType::Boundaries,
        coordinate_type: CoordinateType::Pixel,
    });
    let audio =
        ContentProperties::AudioProperties(AudioProperties { sample_rate: 16000, channels: 2 });
    let feature = ContentProperties::FeatureProperties(FeatureProperties {});
    let normalization = ProcessUnit::NormalizationOptions(NormalizationOptions {
        mean: vec![127.5, 0.1],
        std: vec![127.5, 0.007_843],
    });
    let scores = vec![
        ProcessUnit::ScoreCalibrationOptions(ScoreCalibrationOptions {
            score_transformation: ScoreTransformationType::InverseLogistic,
            default_score: 0.2,
        }),
        ProcessUnit::ScoreThresholdingOptions(ScoreThresholdingOptions {
            global_score_threshold: 0.3,
        }),
    ];
    let group =
        TensorGroup { name: "detections".into(), tensor_names: vec!["boxes".into(), "x".into()] };
    let main = SubGraphMetadata {
        name: "main".into(),
        description: "all of it".into(),
        input_tensor_metadata: vec![
            tensor("image", image, vec![normalization]),
            tensor("sound", audio, vec![]),
        ],
        output_tensor_metadata: vec![
            tensor("boxes", boxes, vec![]),
            tensor("scores", feature, scores),
        ],
        associated_files: vec![file("readme.txt", AssociatedFileType::Descriptions)],
        input_process_units: vec![
            ProcessUnit::BertTokenizerOptions(BertTokenizerOptions { vocab_file: vocabulary() }),
            ProcessUnit::RegexTokenizerOptions(RegexTokenizerOptions {
                delim_regex_pattern: "[^\\w]+".into(),
                vocab_file: vocabulary(),
            }),
        ],
        output_process_units: vec![ProcessUnit::SentencePieceTokenizerOptions(
            SentencePieceTokenizerOptions {
                sentence_piece_model: vec![file("sp.model", AssociatedFileType::Unknown)],
                vocab_file: vocabulary(),
            },
        )],
        input_tensor_groups: vec![group.clone()],
        output_tensor_groups: vec![group],
        custom_metadata: vec![CustomMetadata { name: "MINE".into(), data: vec![1, 2, 255] }],
    };
    ModelMetadata {
        name: "model".into(),
        description: "does something".into(),
        version: "v1".into(),
        subgraph_metadata: vec![main],
        author: "somebody".into(),
        license: "some terms".into(),
        associated_files: vec![file("index", AssociatedFileType::ScannIndexFile)],
        min_parser_version: "1.5.0".into(),
    }
}

fn read(bytes: &[u8]) -> Result<ModelMetadata, String> {
    ModelMetadata::from_bytes(bytes, &ModelLimits::default()).map_err(|e| e.to_string())
}

#[test]
fn flatbuffers_round_trip() {
    assert_eq!(read(&everything().to_bytes()).unwrap(), everything());
    let empty = ModelMetadata { min_parser_version: "1.0.0".into(), ..Default::default() };
    assert_eq!(read(&ModelMetadata::default().to_bytes()).unwrap(), empty);
}

#[test]
fn json_round_trips() {
    let json = everything().to_json();
    assert_eq!(ModelMetadata::from_json(&json).unwrap(), everything());
    for part in [
        "\"content_properties_type\": \"BoundingBoxProperties\"",
        "\"options_type\": \"RegexTokenizerOptions\"",
        "\"sentencePiece_model\"",
        "\"type\": \"TENSOR_AXIS_LABELS\"",
        "\"std\": [\n                  127.5,\n                  0.007843\n",
    ] {
        assert!(json.contains(part), "{part} is missing in {json}");
    }
    assert_eq!(ModelMetadata::default().to_json(), "{}");
}

#[test]
fn json_that_does_not_match_the_schema_is_refused() {
    let error = |json: &str| ModelMetadata::from_json(json).unwrap_err().to_string();
    let in_tensor = |field: &str| {
        error(&format!("{{\"subgraph_metadata\":[{{\"input_tensor_metadata\":[{{{field}}}]}}]}}"))
    };
    assert!(error("{").contains("EOF"));
    assert!(error("{\"nmae\": \"x\"}").contains("unknown field `nmae`"));
    assert!(in_tensor("\"content\":{\"contents\":1}").contains("content"));
    assert!(
        in_tensor("\"content\":{\"content_properties_type\":\"ImageProperty\"}")
            .contains("unknown variant `ImageProperty`")
    );
    assert!(
        in_tensor(
            "\"content\":{\"content_properties_type\":\"ImageProperties\",\
             \"content_properties\":{\"color_space\":\"BGR\"}}"
        )
        .contains("unknown variant `BGR`")
    );
    assert!(
        in_tensor("\"process_units\":[{\"options_type\":\"Normalize\"}]").contains("Normalize")
    );
}

#[test]
fn codes_of_newer_schemas_are_kept() {
    let mut metadata = everything();
    metadata.associated_files[0].r#type = AssociatedFileType::Other(9);
    assert_eq!(read(&metadata.to_bytes()).unwrap(), metadata);
    assert_eq!(ModelMetadata::from_json(&metadata.to_json()).unwrap(), metadata);
}

#[test]
fn other_identifiers_and_damage_are_named() {
    let mut bytes = everything().to_bytes();
    bytes[4..8].copy_from_slice(b"M002");
    assert_eq!(
        read(&bytes).unwrap_err(),
        "TFLITE_METADATA: found \"M002\" where the identifier M001 should be"
    );
    assert!(read(b"").unwrap_err().contains("identifier M001"));
    let cut = everything().to_bytes();
    assert!(read(&cut[..cut.len() / 2]).unwrap_err().starts_with("TFLITE_METADATA: the file is"));
}

#[test]
fn damaged_metadata_does_not_panic() {
    let whole = everything().to_bytes();
    let mut state = 1u32;
    let mut random = |bound: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % bound
    };
    let mut refused = 0;
    for _ in 0..20_000 {
        let mut bytes = whole.clone();
        for _ in 0..=random(3) {
            let at = random(bytes.len());
            bytes[at] = random(256) as u8;
        }
        match read(&bytes) {
            Ok(metadata) => drop(metadata.to_json()),
            Err(_) => refused += 1,
        }
    }
    assert!((1000..19_000).contains(&refused), "{refused}");
}

#[test]
fn the_minimum_version_is_written() {
    let version = |change: fn(&mut SubGraphMetadata)| {
        let mut metadata = ModelMetadata {
            subgraph_metadata: vec![SubGraphMetadata {
                input_tensor_metadata: vec![TensorMetadata::default()],
                ..Default::default()
            }],
            ..Default::default()
        };
        change(&mut metadata.subgraph_metadata[0]);
        read(&metadata.to_bytes()).unwrap().min_parser_version
    };
    let file = |kind| AssociatedFile { r#type: kind, ..Default::default() };
    assert_eq!(version(|_| {}), "1.0.0");
    assert_eq!(version(|g| g.output_tensor_groups.push(TensorGroup::default())), "1.2.0");
    assert_eq!(version(|g| g.custom_metadata.push(CustomMetadata::default())), "1.5.0");
    let regex = |g: &mut SubGraphMetadata| {
        let unit = ProcessUnit::RegexTokenizerOptions(RegexTokenizerOptions::default());
        g.input_tensor_metadata[0].process_units.push(unit);
    };
    assert_eq!(version(regex), "1.2.1");
    let audio = |g: &mut SubGraphMetadata| {
        let properties = ContentProperties::AudioProperties(AudioProperties::default());
        let content = Content { content_properties: Some(properties), range: None };
        g.input_tensor_metadata[0].content = Some(content);
    };
    assert_eq!(version(audio), "1.3.0");
    let mut metadata = ModelMetadata::default();
    metadata.associated_files.push(file(AssociatedFileType::Vocabulary));
    assert_eq!(read(&metadata.to_bytes()).unwrap().min_parser_version, "1.0.1");
}

#[test]
fn files_are_chosen_by_locale() {
    let file = |name: &str, locale: &str| AssociatedFile {
        name: name.into(),
        r#type: AssociatedFileType::TensorAxisLabels,
        locale: locale.into(),
        ..Default::default()
    };
    let tensor = TensorMetadata {
        associated_files: vec![file("a", "de"), file("b", ""), file("c", "en-GB"), file("d", "en")],
        ..Default::default()
    };
    let chosen = |locale| {
        tensor.file_for(AssociatedFileType::TensorAxisLabels, locale).unwrap().name.clone()
    };
    assert_eq!([chosen(""), chosen("en"), chosen("EN-gb")], ["b", "d", "c"]);
    assert_eq!([chosen("de-AT"), chosen("en_US"), chosen("fr")], ["a", "c", "b"]);
    assert!(tensor.file_for(AssociatedFileType::Vocabulary, "en").is_none());
}

/// The bytes of a model with an archive after them.
fn with_archive(files: &[(&str, &[u8])]) -> Bytes {
    let files = AssociatedFiles::pack(files.iter().copied()).unwrap();
    files.append_to(b"bytes of a model".to_vec()).unwrap().into()
}

fn unpacked(file: &Bytes) -> Result<AssociatedFiles, String> {
    AssociatedFiles::at_end_of(file, &ModelLimits::default()).map_err(|e| e.to_string())
}

#[test]
fn files_after_a_model_are_read() {
    let file = with_archive(&[("labels.txt", b"cat\r\ndog\n"), ("empty", b"")]);
    let files = unpacked(&file).unwrap();
    assert_eq!(files.iter().collect::<Vec<_>>(), [("labels.txt", 9), ("empty", 0)]);
    assert_eq!(files.read("labels.txt").unwrap(), b"cat\r\ndog\n");
    assert_eq!(files.lines("labels.txt").unwrap(), ["cat", "dog"]);
    let error = files.read("other").unwrap_err().to_string();
    assert_eq!(
        error,
        "associated file \"other\": not in the model; the model has: labels.txt, empty"
    );
    assert!(unpacked(&Bytes::from_static(b"no archive")).unwrap().is_empty());
    // After another model, and alone.
    let moved: Bytes = files.append_to(vec![1; 1000]).unwrap().into();
    assert_eq!(unpacked(&moved).unwrap(), files);
    assert_eq!(unpacked(&files.to_zip().unwrap().into()).unwrap(), files);
    // A shifted archive, whose offsets do not match.
    let shifted = Bytes::from([&[7; 13][..], &file].concat());
    assert_eq!(unpacked(&shifted).unwrap().read("labels.txt").unwrap(), b"cat\r\ndog\n");
}

#[test]
fn archives_are_limited() {
    let names: Vec<String> = (0..11).map(|n| n.to_string()).collect();
    let files: Vec<(&str, &[u8])> = names.iter().map(|name| (&**name, &[0; 32][..])).collect();
    let file = with_archive(&files);
    let with = |change: fn(&mut ModelLimits)| {
        let mut limits = ModelLimits::default();
        change(&mut limits);
        AssociatedFiles::at_end_of(&file, &limits).and_then(|files| files.read("3"))
    };
    assert!(with(|l| l.max_associated_files = 11).is_ok());
    let error = with(|l| l.max_associated_files = 10).unwrap_err().to_string();
    assert!(error.contains("the number of associated files is 11, above the limit of 10"));
    assert!(with(|l| l.max_associated_bytes = 32).is_ok());
    let error = with(|l| l.max_associated_bytes = 31).unwrap_err().to_string();
    assert!(error.contains("\"3\": the size in bytes is 32, above the limit of 31"), "{error}");
    let within = |max_associated_total| {
        let limits = ModelLimits { max_associated_total, ..ModelLimits::default() };
        AssociatedFiles::at_end_of(&file, &limits).unwrap()
    };
    assert_eq!(within(11 * 32).read_all().unwrap().len(), 11);
    let error = within(11 * 32 - 1).read_all().unwrap_err().to_string();
    assert!(error.contains("together is 352, above the limit of 351"), "{error}");
    assert!(within(10 * 32).with(&[("3", &[0; 99])]).is_ok());
    assert!(within(10 * 32 - 1).with(&[("3", &[0; 99])]).is_err());
}

#[test]
fn a_bomb_is_not_unpacked() {
    use std::io::{Cursor, Write};
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    writer.start_file("bomb", zip::write::SimpleFileOptions::default()).unwrap();
    writer.write_all(&vec![0; 1 << 20]).unwrap();
    let honest = writer.finish().unwrap().into_inner();
    let limits = ModelLimits { max_associated_bytes: 1 << 16, ..ModelLimits::default() };
    let read = |archive: Vec<u8>| {
        AssociatedFiles::at_end_of(&archive.into(), &limits).unwrap().read("bomb").unwrap_err()
    };
    assert!(honest.len() < 4096, "{}", honest.len());
    assert!(read(honest.clone()).to_string().contains("is 1048576, above the limit of 65536"));
    // Wrong stated sizes in the local header and in the directory.
    let mut lying = honest;
    let size = (1u32 << 20).to_le_bytes();
    for at in 0..lying.len() - 4 {
        if lying[at..at + 4] == size {
            lying[at..at + 4].copy_from_slice(&100u32.to_le_bytes());
        }
    }
    let error = read(lying.clone()).to_string();
    assert!(error.contains("above the limit of 65536") || error.contains("damaged"), "{error}");
    let limits = ModelLimits { max_associated_total: 1 << 16, ..ModelLimits::default() };
    let files = AssociatedFiles::at_end_of(&lying.into(), &limits).unwrap();
    let error = files.read_all().unwrap_err().to_string();
    assert!(error.contains("above the limit of 65536") || error.contains("damaged"), "{error}");
}

#[test]
fn damaged_archives_do_not_panic() {
    let whole = with_archive(&[("labels.txt", b"cat\ndog\n"), ("more.txt", b"1234567890")]);
    let (mut refused, mut changed) = (0, 0);
    for at in 21..whole.len() {
        for bit in 0..8 {
            let mut bytes = whole.to_vec();
            bytes[at] ^= 1 << bit;
            match unpacked(&bytes.into()) {
                Ok(files) => {
                    let contents = files.iter().map(|(name, _)| files.read(name));
                    changed += usize::from(contents.into_iter().any(|content| content.is_err()));
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 100 && changed > 100, "{refused} {changed}");
}

#[test]
fn paths_and_special_names_are_not_plain() {
    for name in ["labels.txt", "..labels", "a b", "ä"] {
        assert_eq!(plain_name(name), Some(name));
    }
    for name in ["", ".", "..", "../x", "/x", "a/b", "a\\b", "c:x", "a\0", "a\n"] {
        assert_eq!(plain_name(name), None, "{name:?}");
    }
}
