//! NumPy's `.npy` files of dense arrays.

use npyz::{DType, Endianness, NpyFile, Order, TypeChar, TypeStr, WriteOptions, WriterBuilder};
use xnn_delegate::{DType as ElementType, TensorSpec};

use crate::output::shape;

/// First bytes of a `.npy` file.
pub const MAGIC: &[u8] = b"\x93NUMPY";
/// Limit for the length of a header, as in NumPy.
pub const MAX_HEADER: usize = 10_000;

/// Limit for the bytes of an array of strings, whose elements all have the size of the longest.
const MOST_TEXT: usize = 1 << 30;

/// Returns NumPy's name of an element type.
pub fn type_name(dtype: ElementType) -> Result<&'static str, String> {
    Ok(match dtype {
        ElementType::F16 => "<f2",
        ElementType::F32 => "<f4",
        ElementType::F64 => "<f8",
        ElementType::Complex64 => "<c8",
        ElementType::Complex128 => "<c16",
        ElementType::Bool => "|b1",
        ElementType::I8 => "|i1",
        ElementType::I16 => "<i2",
        ElementType::I32 => "<i4",
        ElementType::I64 => "<i8",
        ElementType::U8 => "|u1",
        ElementType::U16 => "<u2",
        ElementType::U32 => "<u4",
        ElementType::U64 => "<u8",
        other => return Err(format!("NumPy has no element type for {other}")),
    })
}

/// Reads elements of the type and shape of `tensor`, in either byte order, row-major or column-major.
pub fn elements(file: &[u8], tensor: &TensorSpec) -> Result<Vec<u8>, String> {
    check_header(file)?;
    let npy = NpyFile::new(file).map_err(|error| format!("not a .npy file: {error}"))?;
    let wanted = type_name(tensor.dtype)?;
    let found = of_type(&npy.dtype(), &parse(wanted)?).ok_or_else(|| {
        let found = npy.dtype().descr();
        format!("expected dtype '{wanted}', found {found}; save x.astype('{wanted}')")
    })?;
    let dims: Vec<u64> = tensor.dims.iter().map(|&dim| dim as u64).collect();
    if npy.shape() != dims {
        return Err(other_shape(npy.shape(), &dims));
    }
    let order = npy.order();
    let data = npy.into_inner();
    let size = tensor.byte_size().ok_or("the tensor has no fixed size")?;
    if data.len() != size {
        return Err(format!("expected {size} bytes of data, found {}", data.len()));
    }
    let element = found.num_bytes().unwrap_or(1);
    let mut elements = match order {
        Order::C => data.to_vec(),
        Order::Fortran => by_rows(data, &tensor.dims, element),
    };
    if found.endianness() == Endianness::Big {
        let number = if found.type_char() == TypeChar::Complex { element / 2 } else { element };
        elements.chunks_exact_mut(number.max(1)).for_each(<[u8]>::reverse);
    }
    Ok(elements)
}

/// Reads strings of the shape of `tensor`. NumPy pads them with zeros.
pub fn strings(file: &[u8], tensor: &TensorSpec) -> Result<Vec<Vec<u8>>, String> {
    check_header(file)?;
    let npy = NpyFile::new(file).map_err(|error| format!("not a .npy file: {error}"))?;
    let DType::Plain(found) = npy.dtype() else {
        return Err("expected an array of strings".into());
    };
    let width = match (found.type_char(), found.num_bytes()) {
        (TypeChar::ByteStr, Some(width)) => width,
        _ => {
            return Err(format!(
                "expected dtype 'S', found {}; save x.astype('S')",
                npy.dtype().descr()
            ));
        }
    };
    let dims: Vec<u64> = tensor.dims.iter().map(|&dim| dim as u64).collect();
    if npy.shape() != dims {
        return Err(other_shape(npy.shape(), &dims));
    }
    let (order, data) = (npy.order(), npy.into_inner());
    let count: usize = tensor.dims.iter().product();
    if Some(data.len()) != count.checked_mul(width) {
        return Err(format!(
            "expected {count} strings of {width} bytes, found {} bytes of data",
            data.len()
        ));
    }
    let data = match order {
        Order::C => data.to_vec(),
        Order::Fortran => by_rows(data, &tensor.dims, width),
    };
    let trimmed = |string: &[u8]| {
        let end = string.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        string.get(..end).unwrap_or_default().to_vec()
    };
    match width {
        0 => Err("its strings are empty (dtype 'S0')".into()),
        _ => Ok(data.chunks_exact(width).map(trimmed).collect()),
    }
}

/// The type that was `found`, if it is the `wanted` type in either byte order.
fn of_type(found: &DType, wanted: &TypeStr) -> Option<TypeStr> {
    let kind = |name: &TypeStr| (name.type_char(), name.size_field());
    match found {
        DType::Plain(found) if kind(found) == kind(wanted) => Some(found.clone()),
        _ => None,
    }
}

/// Error about another shape. If only dimensions of 1 differ, it has the fix.
fn other_shape(found: &[u64], wanted: &[u64]) -> String {
    let beside_ones =
        |dims: &[u64]| dims.iter().copied().filter(|&dim| dim != 1).collect::<Vec<_>>();
    let fix = if beside_ones(found) == beside_ones(wanted) {
        let dims: Vec<String> = wanted.iter().map(ToString::to_string).collect();
        let dims = if dims.is_empty() { "()".to_owned() } else { dims.join(", ") };
        format!("; save x.reshape({dims})")
    } else {
        String::new()
    };
    format!("expected shape {}, found {}{fix}", shape(wanted), shape(found))
}

/// Converts elements of `size` bytes from column-major to row-major order.
fn by_rows(columns: &[u8], dims: &[usize], size: usize) -> Vec<u8> {
    let count: usize = dims.iter().product();
    let mut rows = Vec::with_capacity(columns.len());
    for index in 0..count {
        let (mut rest, mut stride, mut at) = (index, count, 0);
        for &dim in dims.iter().rev() {
            stride /= dim;
            at += rest % dim * stride;
            rest /= dim;
        }
        rows.extend_from_slice(columns.get(at * size..(at + 1) * size).unwrap_or_default());
    }
    rows
}

/// Reads the dimensions from the header of a `.npy` file, whose data may be missing.
pub fn dims(file: &[u8]) -> Result<Vec<usize>, String> {
    check_header(file)?;
    let npy = NpyFile::new(file).map_err(|error| format!("not a .npy file: {error}"))?;
    let dims = npy.shape().iter().map(|&dim| usize::try_from(dim).ok()).collect::<Option<_>>();
    dims.ok_or_else(|| "its shape is too large".into())
}

/// Returns a `.npy` file with these elements.
pub fn file(tensor: &TensorSpec, elements: &[u8]) -> Result<Vec<u8>, String> {
    with_header(type_name(tensor.dtype)?, &tensor.dims, elements)
}

/// Returns a `.npy` file with these strings, padded with zeros to the longest.
pub fn file_of_strings(tensor: &TensorSpec, strings: &[&[u8]]) -> Result<Vec<u8>, String> {
    let width = strings.iter().map(|string| string.len()).max().unwrap_or(0).max(1);
    let size = width.checked_mul(strings.len()).filter(|&size| size <= MOST_TEXT);
    let size = size.ok_or("its strings are too long for a NumPy array, whose elements all have the size of the longest")?;
    let mut elements = vec![0; size];
    for (element, string) in elements.chunks_exact_mut(width).zip(strings) {
        element.iter_mut().zip(*string).for_each(|(byte, of_string)| *byte = *of_string);
    }
    with_header(&format!("|S{width}"), &tensor.dims, &elements)
}

fn with_header(type_name: &str, dims: &[usize], elements: &[u8]) -> Result<Vec<u8>, String> {
    let mut file = Vec::with_capacity(elements.len() + 128);
    let dims: Vec<u64> = dims.iter().map(|&dim| dim as u64).collect();
    WriteOptions::new_header_only()
        .dtype(DType::new_scalar(parse(type_name)?))
        .shape(&dims)
        .writer(&mut file)
        .write_header_only()
        .map_err(|error| error.to_string())?;
    file.extend_from_slice(elements);
    Ok(file)
}

fn parse(name: &str) -> Result<TypeStr, String> {
    name.parse().map_err(|_| format!("{name} is not a NumPy type"))
}

/// Checks that a header can be parsed safely, because the parser is recursive and multiplies dimensions unchecked.
fn check_header(file: &[u8]) -> Result<(), String> {
    let not_npy = || "not a .npy file".to_owned();
    let (version, rest) = file
        .strip_prefix(MAGIC)
        .and_then(|rest| rest.split_first_chunk::<2>())
        .ok_or_else(not_npy)?;
    let (length, rest) = match version {
        [1, _] => {
            rest.split_first_chunk().map(|(n, rest)| (u32::from(u16::from_le_bytes(*n)), rest))
        }
        _ => rest.split_first_chunk().map(|(n, rest)| (u32::from_le_bytes(*n), rest)),
    }
    .ok_or_else(not_npy)?;
    let length = length as usize;
    if length > MAX_HEADER {
        return Err(format!(
            "its header has {length} bytes, which exceeds the limit of {MAX_HEADER}"
        ));
    }
    let header = rest.get(..length).ok_or("its header is truncated")?;
    let header = str::from_utf8(header).map_err(|_| "its header is not valid UTF-8")?;
    let brackets = header.matches(['(', '[', '{']).count();
    // One bracket for the dictionary, one for the shape.
    if brackets > 2 || total(header).is_none() {
        return Err("expected an array of numbers".into());
    }
    Ok(())
}

/// Product of the dimensions in a header, with 0 counted as 1; `None` if it overflows or the header is not in NumPy's form.
fn total(header: &str) -> Option<u64> {
    let (before, shape) = header.split_once("'shape':")?;
    let (shape, behind) = shape.trim_start().strip_prefix('(')?.split_once(')')?;
    if before.contains("shape") || behind.contains("shape") {
        return None;
    }
    let dims = shape.split(',').map(str::trim).filter(|dim| !dim.is_empty());
    dims.map(|dim| dim.parse::<u64>().ok())
        .try_fold(1u64, |total, dim| total.checked_mul(dim?.max(1)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn npy(header: &str, data: &[u8]) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        file.extend([1, 0]);
        file.extend((header.len() as u16).to_le_bytes());
        file.extend(header.bytes());
        file.extend(data);
        file
    }

    fn verdict(header: &str) -> Result<(), String> {
        check_header(&npy(header, &[]))
    }

    fn spec(dtype: ElementType, dims: &[usize]) -> TensorSpec {
        TensorSpec { name: String::new(), dtype, dims: dims.to_vec(), quantization: None }
    }

    #[test]
    fn elements_are_read_from_either_order() {
        let read = |descr: &str, order: &str, shape: &str, data: &[u8], spec| {
            let header =
                format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
            elements(&npy(&header, data), &spec)
        };
        let shorts = || spec(ElementType::I16, &[2, 3]);
        let rows = [0, 1, 2, 3, 4, 5].map(i16::to_le_bytes).concat();
        assert_eq!(read("<i2", "False", "(2, 3)", &rows, shorts()), Ok(rows.clone()));
        let big = [0, 1, 2, 3, 4, 5].map(i16::to_be_bytes).concat();
        assert_eq!(read(">i2", "False", "(2, 3)", &big, shorts()), Ok(rows.clone()));
        let columns = [0, 3, 1, 4, 2, 5].map(i16::to_be_bytes).concat();
        assert_eq!(read(">i2", "True", "(2, 3)", &columns, shorts()), Ok(rows));
        // [i][j][k] is i + 2 j + 6 k in the order of columns.
        let cube = read(
            "|u1",
            "True",
            "(2, 3, 2)",
            &Vec::from_iter(0..12),
            spec(ElementType::U8, &[2, 3, 2]),
        );
        assert_eq!(cube.unwrap(), [0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11]);
        let complex = [1.0f32, 2.0].map(f32::to_be_bytes).concat();
        let read_complex =
            read(">c8", "False", "(1,)", &complex, spec(ElementType::Complex64, &[1]));
        assert_eq!(read_complex.unwrap(), [1.0f32, 2.0].map(f32::to_le_bytes).concat());
        let nothing = read("|u1", "True", "(2, 0)", &[], spec(ElementType::U8, &[2, 0]));
        assert_eq!(nothing, Ok(vec![]));
        let floats = read("<f4", "False", "(2, 3)", &[0; 24], shorts()).unwrap_err();
        assert!(floats.ends_with("save x.astype('<i2')"), "{floats}");
        let unsigned = read("<u2", "False", "(2, 3)", &[0; 12], shorts()).unwrap_err();
        assert!(unsigned.contains("expected dtype '<i2', found '<u2'"), "{unsigned}");
    }

    #[test]
    fn shapes_that_lack_ones_are_told_what_to_do() {
        let fix = "expected shape 1x2x3, found 2x3; save x.reshape(1, 2, 3)";
        assert_eq!(other_shape(&[2, 3], &[1, 2, 3]), fix);
        assert_eq!(other_shape(&[3, 2], &[1, 2, 3]), "expected shape 1x2x3, found 3x2");
    }

    #[test]
    fn plain_headers_pass() {
        for shape in ["()", "(3,)", "(1, 2, 3)", "(0, 5)", "(4294967296, 4294967295)"] {
            let header =
                format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n");
            assert_eq!(verdict(&header), Ok(()), "{shape}");
        }
    }

    #[test]
    fn headers_that_could_crash_the_parser_do_not_pass() {
        for shape in [
            "(4294967296, 4294967296)",
            "(0, 4294967296, 4294967296)",
            "(0xffffffffffffffff, 2)",
            "((1, 2), 3)",
            "(1",
            "(1,), 'shape': (4294967296, 4294967296)",
        ] {
            let header =
                format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n");
            assert!(verdict(&header).is_err(), "{shape}");
        }
        assert!(verdict(&"(".repeat(9_000)).is_err());
        assert!(verdict(&" ".repeat(MAX_HEADER + 1)).is_err());
    }

    #[test]
    fn cut_off_headers_are_told() {
        let whole = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }\n", &[]);
        for length in 0..whole.len() {
            assert!(check_header(&whole[..length]).is_err(), "{length}");
        }
    }
}
