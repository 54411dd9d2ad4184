//! NumPy's `.npy` files of dense little-endian arrays.

use npyz::{DType, NpyFile, Order, TypeStr, WriteOptions, WriterBuilder};
use xnn_delegate::{DType as ElementType, TensorSpec};

use crate::output::shape;

/// What every `.npy` file starts with.
pub const MAGIC: &[u8] = b"\x93NUMPY";
/// Longest header that is looked at, as in NumPy.
pub const MAX_HEADER: usize = 10_000;

/// NumPy's name of an element type.
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

/// The elements in a `.npy` file, if they are what `tensor` wants.
pub fn elements<'a>(file: &'a [u8], tensor: &TensorSpec) -> Result<&'a [u8], String> {
    check_header(file)?;
    let npy = NpyFile::new(file).map_err(|error| format!("not a .npy file: {error}"))?;
    let wanted = type_name(tensor.dtype)?;
    if npy.dtype() != scalar(wanted)? {
        return Err(format!("its dtype is {}, not '{wanted}'", npy.dtype().descr()));
    }
    if !npy.shape().iter().eq(tensor.dims.iter().map(|&dim| dim as u64).collect::<Vec<_>>().iter())
    {
        let found: Vec<String> = npy.shape().iter().map(ToString::to_string).collect();
        return Err(format!("its shape is {}, not {}", found.join("x"), shape(&tensor.dims)));
    }
    if npy.order() == Order::Fortran && tensor.dims.len() > 1 {
        return Err("its elements are in Fortran order; save numpy.ascontiguousarray(..)".into());
    }
    let data = npy.into_inner();
    let size = tensor.byte_size().ok_or("the tensor has no fixed size")?;
    if data.len() != size {
        return Err(format!("it has {} bytes of data, not {size}", data.len()));
    }
    Ok(data)
}

/// The dimensions in the header of a `.npy` file, of which the rest may be missing.
pub fn dims(file: &[u8]) -> Result<Vec<usize>, String> {
    check_header(file)?;
    let npy = NpyFile::new(file).map_err(|error| format!("not a .npy file: {error}"))?;
    let dims = npy.shape().iter().map(|&dim| usize::try_from(dim).ok()).collect::<Option<_>>();
    dims.ok_or_else(|| "its shape is too large".into())
}

/// A `.npy` file with these elements.
pub fn file(tensor: &TensorSpec, elements: &[u8]) -> Result<Vec<u8>, String> {
    let mut file = Vec::with_capacity(elements.len() + 128);
    let dims: Vec<u64> = tensor.dims.iter().map(|&dim| dim as u64).collect();
    WriteOptions::new_header_only()
        .dtype(scalar(type_name(tensor.dtype)?)?)
        .shape(&dims)
        .writer(&mut file)
        .write_header_only()
        .map_err(|error| error.to_string())?;
    file.extend_from_slice(elements);
    Ok(file)
}

fn scalar(name: &str) -> Result<DType, String> {
    let name: TypeStr = name.parse().map_err(|_| format!("{name} is no type of NumPy"))?;
    Ok(DType::new_scalar(name))
}

/// Lets through headers that can be parsed safely: the parser is recursive, and
/// multiplies dimensions unchecked.
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
        return Err(format!("its header has {length} bytes, more than {MAX_HEADER}"));
    }
    let header = rest.get(..length).ok_or("its header is cut off")?;
    let header = str::from_utf8(header).map_err(|_| "its header is no text")?;
    let brackets = header.matches(['(', '[', '{']).count();
    // One for the dictionary, one for the shape.
    if brackets > 2 || total(header).is_none() {
        return Err("not an array of numbers".into());
    }
    Ok(())
}

/// The product of the dimensions in a header, with 0 taken for 1; `None` if
/// that overflows or the header does not give them as NumPy does.
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
