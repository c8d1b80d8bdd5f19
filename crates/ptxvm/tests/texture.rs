//! Runs the texture and surface cases of `tests/textures`: each form becomes a kernel, each vector a thread
//! of it. Every result, and the texels after stores, are compared with those of the reference in the same
//! folder. A vector that must trap is a separate launch. One trial is one file.
//!
//! No expected value is computed here. The file format is described in `tests/textures/README.md`.

use libtest_mimic::{Arguments, Failed, Trial};
use ptxvm::{
    AddrMode, Arg, Array, ChannelOrder, ChannelType, Compare, Descriptor, ErrorKind, FilterMode, Format,
    Geom, Launch, Sampler, Shape, Vm,
};
use std::fmt::Write as _;
use std::path::Path;

/// Bytes of one operand or result in the arrays a kernel reads and writes.
const SLOT: usize = 8;
/// Wrong results shown for a form.
const SHOWN: usize = 4;

fn main() {
    let args = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/textures");
    let mut files: Vec<_> =
        std::fs::read_dir(&root).expect("tests/textures").map(|e| e.expect("entry").path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "case"));
    files.sort();
    assert!(!files.is_empty(), "no cases in {}", root.display());
    let trials = files.into_iter().map(|file| {
        let name = file.file_stem().expect("stem").to_string_lossy().into_owned();
        Trial::test(name, move || {
            let text = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
            run_file(&text).map_err(Failed::from)
        })
    });
    libtest_mimic::run(&args, trials.collect()).exit();
}

/// What a form runs with.
#[derive(Clone, Default)]
struct Setting<'a> {
    array: &'a str,
    levels: Vec<&'a str>,
    /// `texture`, `surface` or `unbound` line.
    bound: &'a str,
    /// `sampler` line: independent mode.
    sampler: &'a str,
    /// How the instruction names the object.
    access: &'a str,
    /// Initial fields of the variable.
    fields: &'a str,
}

/// What a vector must come to.
enum Outcome<'a> {
    Results(Vec<u64>),
    /// The word of a trap's kind.
    Trap(&'a str),
}

struct Form<'a> {
    line: usize,
    name: &'a str,
    setting: Setting<'a>,
    /// Goes on with the array that the form before it left.
    goes_on: bool,
    outs: Vec<(&'a str, &'a str)>,
    ins: Vec<(&'a str, &'a str)>,
    body: &'a str,
    vectors: Vec<(usize, Vec<u64>, Outcome<'a>)>,
    after: Option<&'a str>,
}

fn run_file(text: &str) -> Result<(), String> {
    let forms = parse(text)?;
    let (mut report, mut failed) = (String::new(), 0);
    let mut last = None;
    for form in &forms {
        if let Err(why) = run_form(form, &mut last) {
            failed += 1;
            if failed <= 20 {
                let _infallible = writeln!(report, "line {}: {}\n{why}", form.line, form.name);
            }
        }
    }
    if failed == 0 { Ok(()) } else { Err(format!("{failed} of {} forms failed\n{report}", forms.len())) }
}

fn parse(text: &str) -> Result<Vec<Form<'_>>, String> {
    let mut forms: Vec<Form<'_>> = Vec::new();
    let mut setting = Setting { access: "variable", ..Setting::default() };
    for (number, line) in text.lines().enumerate().map(|(i, l)| (i + 1, l)) {
        let bad = |what: &str| format!("line {number}: {what}");
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "" | "#" => {}
            "array" => (setting.array, setting.levels) = (rest, Vec::new()),
            "level" => setting.levels.push(rest),
            "texture" | "surface" | "unbound" => setting.bound = line,
            "sampler" => setting.sampler = rest,
            "access" => setting.access = rest,
            "fields" => setting.fields = rest,
            "form" | "then" => {
                let parts: Vec<&str> = rest.split('|').map(str::trim).collect();
                let [name, outs, ins, body] = parts[..] else { return Err(bad("not a form")) };
                let split = |list| operands_of(list).ok_or_else(|| bad("not operands"));
                forms.push(Form {
                    line: number,
                    name,
                    setting: setting.clone(),
                    goes_on: word == "then",
                    outs: split(outs)?,
                    ins: split(ins)?,
                    body,
                    vectors: Vec::new(),
                    after: None,
                });
            }
            "after" => forms.last_mut().ok_or_else(|| bad("before any form"))?.after = Some(rest),
            _ => {
                let form = forms.last_mut().ok_or_else(|| bad("a vector before any form"))?;
                let (left, right) = line.split_once('=').ok_or_else(|| bad("not a vector"))?;
                let words = |list: &str| -> Result<Vec<u64>, String> {
                    let all = list.split_whitespace().map(|hex| u64::from_str_radix(hex, 16));
                    all.collect::<Result<_, _>>().map_err(|_| bad("not hexadecimal"))
                };
                let ins = words(left)?;
                let outcome = match right.trim().strip_prefix("trap ") {
                    Some(kind) => Outcome::Trap(kind),
                    None => Outcome::Results(words(right)?),
                };
                let fits = match &outcome {
                    Outcome::Results(outs) => outs.len() == form.outs.len(),
                    Outcome::Trap(_) => true,
                };
                if ins.len() != form.ins.len() || !fits {
                    return Err(bad("another number of values than the form has"));
                }
                form.vectors.push((number, ins, outcome));
            }
        }
    }
    Ok(forms)
}

fn operands_of(list: &str) -> Option<Vec<(&str, &str)>> {
    list.split_whitespace().map(|operand| operand.split_once(':')).collect()
}

fn bytes_of(hex: &str) -> Result<Vec<u8>, String> {
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).map_err(|e| e.to_string());
    (0..hex.len()).step_by(2).map(digit).collect()
}

/// The value of `key=value` in a line.
fn option<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.split_whitespace().find_map(|word| word.split_once('=').filter(|(k, _)| *k == key).map(|(_, v)| v))
}

fn array(vm: &Vm, setting: &Setting<'_>) -> Option<Array> {
    let mut words = setting.array.split_whitespace().skip(1);
    let geom = match words.next()? {
        "1d" => Geom::D1,
        "2d" => Geom::D2,
        "3d" => Geom::D3,
        "a1d" => Geom::A1d,
        "a2d" => Geom::A2d,
        "cube" => Geom::Cube,
        "acube" => Geom::Acube,
        "2dms" => Geom::D2ms,
        "a2dms" => Geom::A2dms,
        _ => return None,
    };
    let types = [
        "snorm8", "snorm16", "unorm8", "unorm16", "565", "555", "101010", "s8", "s16", "s32", "u8", "u16",
        "u32", "half", "float",
    ];
    let orders = ["r", "a", "rg", "ra", "rgb", "rgba", "bgra", "argb", "intensity", "luminance"];
    let (ty, order) = (words.next()?, words.next()?);
    let ty = ChannelType::ALL[types.iter().position(|t| *t == ty)?];
    let order = ChannelOrder::ALL[orders.iter().position(|o| *o == order)?];
    let mut size = words.next()?.split('x').map(|n| n.parse().ok());
    let size = [size.next()??, size.next()??, size.next()??];
    let number = |key| option(setting.array, key)?.parse::<u32>().ok();
    let shape = Shape {
        geom,
        size,
        layers: number("layers")?,
        levels: number("levels")?,
        samples: number("samples")?,
    };
    let array = vm.array(shape, Format::new(ty, order)?).ok()?;
    for (level, hex) in setting.levels.iter().enumerate() {
        array.write(level as u32, &bytes_of(hex).ok()?).ok()?;
    }
    Some(array)
}

fn descriptor(array: &Array, line: &str) -> Option<Descriptor> {
    if line.starts_with("surface") {
        return Descriptor::surface(array, option(line, "level")?.parse().ok()?).ok();
    }
    // Without fields, the variable's own hold.
    let sampler = if option(line, "filter").is_some() { Some(sampler(line)?) } else { None };
    Some(Descriptor::texture(array, option(line, "normalized").map(|flag| flag == "1"), sampler))
}

fn sampler(line: &str) -> Option<Sampler> {
    let filter = |key| match option(line, key)? {
        "nearest" => Some(FilterMode::Nearest),
        "linear" => Some(FilterMode::Linear),
        _ => None,
    };
    let modes = ["wrap", "mirror", "clamp_ogl", "clamp_to_edge", "clamp_to_border"];
    let mut addr = option(line, "addr")?
        .split(',')
        .map(|mode| Some(AddrMode::ALL[modes.iter().position(|m| *m == mode)?]));
    Some(Sampler {
        filter: filter("filter")?,
        addr: [addr.next()??, addr.next()??, addr.next()??],
        force_unnormalized: option(line, "force").is_some_and(|flag| flag == "1"),
        compare: match option(line, "compare")? {
            "never" => Compare::Never,
            "less" => Compare::Less,
            "equal" => Compare::Equal,
            "lequal" => Compare::Lequal,
            "greater" => Compare::Greater,
            "notequal" => Compare::Notequal,
            "gequal" => Compare::Gequal,
            _ => Compare::Always,
        },
        level_filter: filter("mip")?,
    })
}

/// Where the object is declared, what gets its address into `%t` and `%s`, and the body that names it there.
fn naming(form: &Form<'_>) -> Option<(String, String, String, String)> {
    let Setting { bound, sampler, access, fields, .. } = &form.setting;
    let ty = match bound.split_whitespace().next()? {
        "surface" => "surfref",
        "texture" => "texref",
        _ => bound.split_whitespace().nth(1)?,
    };
    let initial = if fields.is_empty() { String::new() } else { format!(" = {{ {fields} }}") };
    let independent = !sampler.is_empty();
    let variables = match independent {
        true => format!(".global .{ty} t{initial};\n.global .samplerref s;\n"),
        false => format!(".global .{ty} t{initial};\n"),
    };
    let of_type = match independent {
        true => format!(", .param .{ty} t, .param .samplerref s"),
        false => format!(", .param .{ty} t"),
    };
    let by_register = form.body.replace("[t", "[%t");
    let (none, body) = (String::new(), form.body.to_owned());
    Some(match *access {
        "variable" => (variables, none.clone(), none, body),
        "parameter" => (none.clone(), of_type, none, body),
        "address" => (variables, none, "mov.u64 %t, t;".to_owned(), by_register),
        "parameter_address" => (none, of_type, "mov.u64 %t, t;".to_owned(), by_register),
        "number" => (none, ", .param .u64 t".to_owned(), "ld.param.u64 %t, [t];".to_owned(), by_register),
        // Kept in memory, handed to a function and back.
        "memory" => (
            format!(
                "{variables}.func (.reg .b64 r) same(.reg .b64 a) {{ mov.b64 r, a; ret; }}\n.global .u64 kept;\n"
            ),
            none,
            "mov.u64 %t, t; st.global.u64 [kept], %t; ld.global.u64 %t, [kept]; call (%t), same, (%t);"
                .to_owned(),
            by_register,
        ),
        _ => return None,
    })
}

fn kernel(form: &Form<'_>) -> Option<String> {
    let (variables, params, load, body) = naming(form)?;
    let mode = if form.setting.sampler.is_empty() { "" } else { ", texmode_independent" };
    let (ins, outs) = (form.ins.len() * SLOT, form.outs.len() * SLOT);
    let mut text = format!(
        ".version 6.4\n.target sm_70{mode}\n.address_size 64\n{variables}.visible .entry k(.param .u64 ins, .param .u64 outs, .param .u32 count{params})\n{{\n"
    );
    for (name, ty) in form.outs.iter().chain(&form.ins) {
        text += &format!("    .reg .{ty} %{name};\n");
    }
    text += &format!(
        "    .reg .b64 %in, %out, %t;\n    .reg .b32 %slot, %count;\n    .reg .pred %off;\n    mov.u32 %slot, %tid.x;\n    ld.param.u32 %count, [count];\n    setp.ge.u32 %off, %slot, %count;\n    @%off ret;\n    ld.param.u64 %in, [ins];\n    ld.param.u64 %out, [outs];\n    mad.wide.u32 %in, %slot, {ins}, %in;\n    mad.wide.u32 %out, %slot, {outs}, %out;\n    {load}\n"
    );
    for (i, (name, ty)) in form.ins.iter().enumerate() {
        text += &format!("    ld.global.{ty} %{name}, [%in+{}];\n", i * SLOT);
    }
    text += &format!("    {body}\n");
    for (i, (name, ty)) in form.outs.iter().enumerate() {
        text += &format!("    st.global.{ty} [%out+{}], %{name};\n", i * SLOT);
    }
    Some(text + "    ret;\n}\n")
}

/// The device and the array of the form before.
type Last = Option<(Vm, Array)>;

fn run_form(form: &Form<'_>, last: &mut Last) -> Result<(), String> {
    let text = |e: ptxvm::Error| e.to_string();
    if !form.goes_on {
        *last = None;
    }
    if last.is_none() {
        let vm = Vm::new().map_err(text)?;
        let array = array(&vm, &form.setting).ok_or("not an array")?;
        *last = Some((vm, array));
    }
    let (vm, array) = last.as_ref().ok_or("no array")?;
    let setting = &form.setting;
    let module = vm.load("case.ptx", &kernel(form).ok_or("not an access")?).map_err(text)?;
    let mut objects = Vec::new();
    if !setting.bound.starts_with("unbound") {
        let descriptor = descriptor(array, setting.bound).ok_or("not a binding")?;
        if matches!(setting.access, "variable" | "address" | "memory") {
            module.bind("t", &descriptor).map_err(text)?;
        } else {
            objects.push(vm.object("t", descriptor).map_err(text)?);
        }
    }
    if !setting.sampler.is_empty() {
        let descriptor = Descriptor::sampler(sampler(setting.sampler).ok_or("not a sampler")?);
        match setting.access {
            "variable" => module.bind("s", &descriptor).map_err(text)?,
            _ => objects.push(vm.object("s", descriptor).map_err(text)?),
        }
    }
    let kernel = module.kernel("k").map_err(text)?;
    let width = form.outs.len();
    let launch = |vectors: &[&(usize, Vec<u64>, Outcome<'_>)]| -> Result<Result<Vec<u64>, String>, String> {
        let count = vectors.len();
        let ins: Vec<u64> = vectors.iter().flat_map(|(_, ins, _)| ins.iter().copied()).collect();
        let ins = vm.buffer(&ins).map_err(text)?;
        let outs = vm.zeros::<u64>(count * width).map_err(text)?;
        let mut args = vec![Arg::buffer(&ins), Arg::buffer(&outs), (count as u32).into()];
        args.extend(objects.iter().map(Arg::object));
        let launch = Launch::new([1; 3], [count.next_multiple_of(32) as u32, 1, 1]);
        let launch = launch.args(&kernel, &args).map_err(text)?;
        match vm.launch(&kernel, &launch).map_err(ptxvm::Error::into_kind) {
            Ok(_) => outs.read().map(Ok).map_err(text),
            Err(ErrorKind::Trap(trap, _)) => Ok(Err(trap.kind.word().to_owned())),
            Err(other) => Err(text(other.into())),
        }
    };
    let (mut wrong, mut failed) = (String::new(), 0);
    let mut note = |line: usize, ins: &[u64], found: String, expected: String| {
        failed += 1;
        if failed <= SHOWN {
            let _infallible =
                writeln!(wrong, "  line {line}: {ins:x?}\n    gives {found}\n    not   {expected}");
        }
    };
    let (plain, trapping): (Vec<_>, Vec<_>) =
        form.vectors.iter().partition(|(_, _, outcome)| matches!(outcome, Outcome::Results(_)));
    let results = if plain.is_empty() { Vec::new() } else { launch(&plain)?? };
    for (index, (line, ins, outcome)) in plain.iter().enumerate() {
        let found = &results[index * width..][..width];
        if let Outcome::Results(expected) = outcome
            && found != expected
        {
            note(*line, ins, format!("{found:x?}"), format!("{expected:x?}"));
        }
    }
    for vector in trapping {
        let (line, ins, outcome) = vector;
        let found = launch(&[vector])?;
        if let Outcome::Trap(expected) = outcome
            && found.as_ref().err().map(String::as_str) != Some(*expected)
        {
            note(*line, ins, format!("{found:x?}"), format!("a trap {expected}"));
        }
    }
    if let Some(after) = form.after
        && array.read(0).map_err(text)? != bytes_of(after)?
    {
        failed += 1;
        wrong += "  the texels are wrong afterwards\n";
    }
    let count = form.vectors.len();
    if failed == 0 { Ok(()) } else { Err(format!("{failed} of {count} vectors\n{wrong}")) }
}
