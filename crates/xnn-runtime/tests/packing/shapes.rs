//! Packed weights of programs for other shapes.

use super::*;

#[test]
fn nodes_of_a_similar_program_keep_their_packed_weights() {
    let first = Program::new(graph(1.0), &ProgramOptions::default()).unwrap();
    first.check_compiles().unwrap();
    for (factor, batch, padding, common) in [(1.0, 3, 0, 4), (1.0, 1, 1, 3), (2.0, 3, 0, 0)] {
        let similar = Some(first.clone());
        let options = ProgramOptions { similar, ..ProgramOptions::default() };
        let graph = || variant(factor, batch, padding);
        let program = Program::new(graph(), &options).unwrap();
        let alone = Program::new(graph(), &ProgramOptions::default()).unwrap();
        assert_eq!(run(&program), run(&alone));
        let case = format!("factor {factor}, batch {batch}, padding {padding}");
        assert_eq!((in_common(&program, &first), in_common(&alone, &first)), (common, 0), "{case}");
    }
}

#[test]
fn weights_are_reused_across_shapes() {
    let first = Program::new(graph(1.0), &ProgramOptions::default()).unwrap();
    first.check_compiles().unwrap();
    let mut last = first.clone();
    for batch in [2, 3, 1] {
        let options = ProgramOptions { similar: Some(last), ..ProgramOptions::default() };
        last = Program::new(variant(1.0, batch, 0), &options).unwrap();
        last.check_compiles().unwrap();
    }
    assert_eq!(in_common(&last, &first), 4);
}

#[test]
fn other_shapes_use_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let cache_dir = Some(folder.path().to_owned());
    let make = |batch, padding, similar: Option<&Program>| {
        let options = ProgramOptions {
            cache_dir: cache_dir.clone(),
            similar: similar.cloned(),
            ..ProgramOptions::default()
        };
        let program = Program::new(variant(1.0, batch, padding), &options).unwrap();
        let alone = Program::new(variant(1.0, batch, padding), &ProgramOptions::default()).unwrap();
        assert_eq!(run(&program), run(&alone), "batch {batch}, padding {padding}");
        program
    };
    let first = make(1, 0, None);
    let [file] = files(folder.path()).try_into().unwrap();
    let written = fs::metadata(&file).unwrap().modified().unwrap();
    for batch in [3, 2] {
        assert_eq!(in_file(&make(batch, 0, None), &file), 4);
        assert_eq!(in_common(&make(batch, 0, Some(&first)), &first), 4);
    }
    assert_eq!(files(folder.path()), std::slice::from_ref(&file));
    assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), written);
    // Layers with other parameters may be packed differently.
    make(1, 1, None);
    assert_eq!(files(folder.path()).len(), 2);
}
