//! `--launch FILE.json`: options of the command line in a file.
//!
//! Invariant: unknown keys are refused; texts in the file have the syntax of the command line.

use crate::UsageError;
use crate::arg::Arg;
use crate::bind::Given;
use crate::object::{Kind, Object, Source};
use serde_json::{Map, Value};

/// The longest launch file in bytes. Chosen: a thousand times the usual size.
const LONGEST: u64 = 16 << 20;

/// The contents of a launch file.
#[derive(Debug, Default)]
pub(crate) struct LaunchFile {
    /// Kernel.
    pub(crate) kernel: Option<String>,
    /// CTAs.
    pub(crate) grid: Option<[u32; 3]>,
    /// Threads of a CTA.
    pub(crate) block: Option<[u32; 3]>,
    /// Bytes of dynamic shared memory.
    pub(crate) shared: Option<u32>,
    /// Arguments, bindings and texels.
    pub(crate) given: Given,
}

impl LaunchFile {
    /// Reads a file.
    pub(crate) fn read(path: &std::path::Path) -> Result<Self, UsageError> {
        let fail = |why: String| UsageError(format!("`{}`: {why}", path.display()));
        let bytes = std::fs::File::open(path).and_then(|mut file| crate::read_at_most(&mut file, LONGEST));
        let text = String::from_utf8(bytes.map_err(|e| fail(e.to_string()))?);
        let text = text.map_err(|_| fail("it is not UTF-8".to_owned()))?;
        Self::parse(&text).map_err(fail)
    }

    /// Reads the contents of a file.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
        let mut file = Self::default();
        for (key, value) in object(&value, "a launch file")? {
            match key.as_str() {
                "kernel" => file.kernel = Some(string(value, key)?.to_owned()),
                "grid" => file.grid = Some(extent(value, key)?),
                "block" => file.block = Some(extent(value, key)?),
                "shared" => file.shared = Some(number(value, key)?),
                "args" => {
                    let list = value.as_array().ok_or("`args` is a list")?;
                    file.given.args = list.iter().map(argument).collect::<Result<_, _>>()?;
                }
                "bind" => {
                    for (name, value) in object(value, key)? {
                        let Arg::Object(bound) = argument(value)? else {
                            return Err(format!("`{name}` is bound to `tex`, `surf` or `sampler`"));
                        };
                        file.given.binds.push((name.clone(), *bound));
                    }
                }
                "texels" => {
                    for (name, value) in object(value, key)? {
                        file.given.texels.push((name.clone(), texels(value)?));
                    }
                }
                _ => {
                    return Err(format!(
                        "`{key}` is not `kernel`, `grid`, `block`, `shared`, `args`, `bind` or `texels`"
                    ));
                }
            }
        }
        Ok(file)
    }
}

/// An argument: the text of `--arg`, or an object such as `{"tex": "FILE.npy", "filter_mode": "linear"}`.
fn argument(value: &Value) -> Result<Arg, String> {
    if let Some(text) = value.as_str() {
        return Arg::parse(text).map_err(|e| e.0);
    }
    let map = object(value, "an argument")?;
    let kinds = ["tex", "surf", "sampler"].into_iter().filter(|name| map.contains_key(*name));
    let [prefix] = kinds.collect::<Vec<_>>()[..] else {
        return Err("an argument has one of the keys `tex`, `surf` and `sampler`".to_owned());
    };
    let kind = Kind::of(prefix).ok_or("not a kind of object")?;
    described(kind, map, prefix).map(Box::new).map(Arg::Object)
}

/// `"SOURCE,FIELD=VALUE,..."` or `{"source": "FILE.npy", FIELD: VALUE, ...}`
fn texels(value: &Value) -> Result<Object, String> {
    match value.as_str() {
        Some(text) => Object::parse(Kind::Texels, text),
        None => described(Kind::Texels, object(value, "texels")?, "source"),
    }
}

/// An object whose source is under a key, with its fields by name. The fields of a sampler may also be in the
/// key's object.
fn described(kind: Kind, map: &Map<String, Value>, key: &str) -> Result<Object, String> {
    let source = match (kind, map.get(key)) {
        (Kind::Sampler, Some(Value::Object(fields))) if map.len() == 1 => {
            return with_fields(kind, None, fields, "");
        }
        (Kind::Sampler, _) => return Err("`sampler` is an object of fields".to_owned()),
        (Kind::Texture | Kind::Surface | Kind::Texels, Some(Value::String(text))) => Source::parse(text)?,
        (Kind::Texture | Kind::Surface | Kind::Texels, _) => return Err(format!("`{key}` names the texels")),
    };
    with_fields(kind, Some(source), map, key)
}

fn with_fields(
    kind: Kind,
    source: Option<Source>,
    map: &Map<String, Value>,
    key: &str,
) -> Result<Object, String> {
    let texts: Vec<(&str, String)> = map
        .iter()
        .filter(|(name, _)| *name != key)
        .map(|(name, value)| match value {
            Value::String(text) => Ok((name.as_str(), text.clone())),
            Value::Number(number) => Ok((name.as_str(), number.to_string())),
            Value::Bool(flag) => Ok((name.as_str(), u8::from(*flag).to_string())),
            Value::Null | Value::Array(_) | Value::Object(_) => {
                Err(format!("`{name}` is a text or a number"))
            }
        })
        .collect::<Result<_, _>>()?;
    Object::new(kind, source, texts.iter().map(|(name, value)| Ok((*name, value.as_str()))))
}

fn object<'a>(value: &'a Value, what: &str) -> Result<&'a Map<String, Value>, String> {
    value.as_object().ok_or_else(|| format!("{what} is an object"))
}

fn string<'a>(value: &'a Value, key: &str) -> Result<&'a str, String> {
    value.as_str().ok_or_else(|| format!("`{key}` is a text"))
}

fn number(value: &Value, key: &str) -> Result<u32, String> {
    let number = value.as_u64().and_then(|n| u32::try_from(n).ok());
    number.ok_or_else(|| format!("`{key}` is a number of 32 bits"))
}

/// A number, or a list of one to three.
fn extent(value: &Value, key: &str) -> Result<[u32; 3], String> {
    let list = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    let mut extent = [1; 3];
    if list.is_empty() || list.len() > 3 {
        return Err(format!("`{key}` has one to three extents"));
    }
    for (slot, value) in extent.iter_mut().zip(list) {
        *slot = number(value, key)?;
        if *slot == 0 {
            return Err(format!("an extent of `{key}` is at least 1"));
        }
    }
    Ok(extent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_says_is_what_the_command_line_says() {
        let file = LaunchFile::parse(
            r#"{"kernel": "k", "grid": 3, "block": [8, 4], "shared": 64,
                "args": ["s32:-1", {"tex": "inout:a.npy", "filter_mode": "linear", "normalized_coords": true}, {"sampler": {"addr_mode": "wrap"}}],
                "texels": {"t": {"source": "zeros:64", "width": 16, "channel_data_type": "float"}, "u": "b.npy,geom=2d"},
                "bind": {"s": "surf:@t,level=0", "v": {"tex": "@u"}}}"#,
        )
        .unwrap();
        assert_eq!(file.kernel.as_deref(), Some("k"));
        assert_eq!((file.grid, file.block, file.shared), (Some([3, 1, 1]), Some([8, 4, 1]), Some(64)));
        let args =
            ["s32:-1", "tex:inout:a.npy,filter_mode=linear,normalized_coords=1", "sampler:,addr_mode=wrap"];
        assert_eq!(file.given.args, args.map(|text| Arg::parse(text).unwrap()));
        let parse = |kind, text| Object::parse(kind, text).unwrap();
        let texels = [("t", "zeros:64,width=16,channel_data_type=float"), ("u", "b.npy,geom=2d")];
        let texels = texels.map(|(name, text)| (name.to_owned(), parse(Kind::Texels, text)));
        assert_eq!(file.given.texels, texels);
        let binds = [("s", Kind::Surface, "@t,level=0"), ("v", Kind::Texture, "@u")];
        assert_eq!(file.given.binds, binds.map(|(name, kind, text)| (name.to_owned(), parse(kind, text))));
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for wrong in [
            "",
            "[]",
            r#"{"gird": 1}"#,
            r#"{"grid": 0}"#,
            r#"{"grid": [1, 2, 3, 4]}"#,
            r#"{"shared": -1}"#,
            r#"{"args": "s32:1"}"#,
            r#"{"args": [{"tex": "a.npy", "surf": "b.npy"}]}"#,
            r#"{"args": [{"tex": "a.npy", "filter": "linear"}]}"#,
            r#"{"bind": {"t": "s32:1"}}"#,
            r#"{"bind": {"t": {"sampler": "a.npy"}}}"#,
            r#"{"texels": {"t": {"width": 3}}}"#,
        ] {
            assert!(LaunchFile::parse(wrong).is_err(), "{wrong}");
        }
    }
}
