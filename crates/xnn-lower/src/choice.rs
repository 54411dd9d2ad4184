//! Options with a few named values.

/// The value that `name` stands for, or an error that lists all names.
pub(crate) fn choice<T: Copy, const N: usize>(
    choices: &[(&str, T); N],
    name: &str,
) -> Result<T, String> {
    let found = choices.iter().find(|(known, _)| *known == name);
    found.map(|(_, choice)| *choice).ok_or_else(|| {
        let names = choices.each_ref().map(|(name, _)| *name);
        format!("{name:?} is none of {}", names.join(", "))
    })
}
