//! One object of each kind that functions of the driver API take, and wrong ones.
#![allow(dead_code, reason = "each test uses a part of it")]

use crate::support::Api;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The kind of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Out(usize),
    In(String),
    InOut,
    Text(String),
    Image,
    ImageSize,
    Host,
    Code,
    Params,
    Device,
    Managed,
    Pinned,
    Registered,
    Size(usize),
    Number(usize),
    Handle(String),
}

impl Kind {
    pub(crate) fn of(word: &str) -> Self {
        if let Some(bytes) = word.strip_prefix("out:") {
            return Kind::Out(bytes.parse().expect("bytes"));
        }
        if let Some(what) = word.strip_prefix("in:") {
            return Kind::In(what.to_owned());
        }
        if let Some(what) = word.strip_prefix("text:") {
            return Kind::Text(what.to_owned());
        }
        if let Some(value) = word.strip_prefix("size=") {
            return Kind::Size(value.parse().expect("a size"));
        }
        if let Some(value) = word.strip_prefix("number=") {
            return Kind::Number(value.parse().expect("a number"));
        }
        match word {
            "inout" => Kind::InOut,
            "image" => Kind::Image,
            "imagesize" => Kind::ImageSize,
            "host" => Kind::Host,
            "code" => Kind::Code,
            "params" => Kind::Params,
            "dev" => Kind::Device,
            "managed" => Kind::Managed,
            "pinned" => Kind::Pinned,
            "registered" => Kind::Registered,
            handle => Kind::Handle(handle.to_owned()),
        }
    }
}

// SAFETY: the declarations have the signatures that POSIX gives these functions of the C library.
unsafe extern "C" {
    fn mmap(
        at: *mut c_void,
        bytes: usize,
        rights: c_int,
        flags: c_int,
        file: c_int,
        offset: i64,
    ) -> *mut c_void;
    fn mprotect(at: *mut c_void, bytes: usize, rights: c_int) -> c_int;
}

/// Words of a structure, with zeros after its fields.
type Words = [u64; 40];

/// A structure or list in memory before an inaccessible page. A count that exceeds it finds no memory,
/// instead of other data of this test that would be used as addresses.
pub(crate) struct Given(usize);

impl Given {
    pub(crate) fn new(words: Words) -> Self {
        let unused = UNUSED.lock().expect("no panic").pop();
        let start = unused.unwrap_or_else(|| {
            // SAFETY: a new mapping replaces none.
            // Flags of Linux: private and anonymous, readable and writable.
            let at = unsafe { mmap(std::ptr::null_mut(), 2 * PAGE, 3, 0x22, -1, 0) };
            // SAFETY: this is the second page of the new mapping.
            let closed = unsafe { mprotect(at.wrapping_byte_add(PAGE), PAGE, 0) };
            assert_eq!(closed, 0, "no page can be closed");
            at.expose_provenance() + PAGE - size_of::<Words>()
        });
        let place = std::ptr::with_exposed_provenance_mut::<Words>(start);
        // SAFETY: this is the end of the page that was just mapped.
        unsafe { place.write(words) };
        Self(start)
    }

    pub(crate) fn address(&self) -> usize {
        self.0
    }
}

/// Addresses of former structures, for new ones.
static UNUSED: std::sync::Mutex<Vec<usize>> = std::sync::Mutex::new(Vec::new());

impl Drop for Given {
    fn drop(&mut self) {
        UNUSED.lock().expect("no panic").push(self.0);
    }
}

/// Writable memory for results and kernel parameters, whose address may stand in a structure.
///
/// The test replaces each half of each word of a structure. Such an address must not become that of other
/// memory: the C library aligns its heaps so that replacing the low half of a heap address by zeros gives the
/// address of the heap's own header. So this memory is far from where the system maps pages by itself, and
/// beyond the shadow memory of AddressSanitizer (which ends at 0x1000_7fff_8000).
struct Room(usize);

/// Words of a [`Room`] that are for results.
const RESULTS: usize = 480;
/// The word of a [`Room`] in which the list of kernel parameters begins.
const PARAMS: usize = 496;
/// The word of a [`Room`] that holds the value of the only kernel parameter.
const VALUE: usize = 504;
/// Bytes of a [`Room`], and how many of them there are at a time.
const ROOM: usize = PAGE;
const ROOMS: usize = 64;

/// Addresses of unused rooms.
static ROOMS_LEFT: std::sync::Mutex<Option<Vec<usize>>> = std::sync::Mutex::new(None);

impl Room {
    fn new() -> Self {
        let mut left = ROOMS_LEFT.lock().expect("no panic");
        let left = left.get_or_insert_with(|| {
            let start = std::ptr::with_exposed_provenance_mut::<c_void>(0x2fd0_1000_0000);
            // SAFETY: the last flag says that the new mapping replaces none.
            // Flags of Linux: private, anonymous, at this place.
            let at = unsafe { mmap(start, ROOMS * ROOM, 3, 0x10_0022, -1, 0) };
            assert_eq!(at, start, "the place for results is not free");
            (0..ROOMS).map(|index| at.expose_provenance() + index * ROOM).collect()
        });
        Self(left.pop().expect("few of them live at a time"))
    }

    /// The address of a 64-bit word.
    fn word(&self, index: usize) -> usize {
        assert!(index < ROOM / 8);
        self.0 + index * 8
    }

    fn write(&self, index: usize, value: usize) {
        // SAFETY: the word is in the mapping, of which this value owns the part.
        unsafe { std::ptr::with_exposed_provenance_mut::<usize>(self.word(index)).write(value) }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if let Some(left) = &mut *ROOMS_LEFT.lock().expect("no panic") {
            left.push(self.0);
        }
    }
}

const PAGE: usize = 4096;

/// A page of the process with these access rights.
fn page(rights: c_int) -> usize {
    // SAFETY: a new mapping replaces none.
    // Flags of Linux: private and anonymous.
    let at = unsafe { mmap(std::ptr::null_mut(), PAGE, rights, 0x22, -1, 0) };
    at.expose_provenance()
}

/// Pages that all tests share: an unmapped one (far from where the system maps pages by itself), an
/// inaccessible one, and a read-only one.
fn pages() -> [usize; 3] {
    static PAGES: std::sync::OnceLock<[usize; 3]> = std::sync::OnceLock::new();
    *PAGES.get_or_init(|| [0x2ff0_0000_0000, page(0), page(1)])
}

/// Host memory that all tests share, as large as the device memory in the tests.
fn host() -> usize {
    static HOST: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    *HOST.get_or_init(|| vec![0u64; 1 << 15].leak().as_mut_ptr().expose_provenance())
}

extern "C" fn nothing(_data: *mut c_void) {}

/// Handles, by their kind.
const HANDLES: &[&str] = &[
    "context", "stream", "event", "module", "function", "array", "mipmap", "texref", "surfref", "link",
    "graph", "node", "exec", "pool", "object", "tex", "surf",
];

/// Names of addresses.
const ADDRESSES: &[&str] = &[
    "device",
    "wild",
    "freed",
    "managed",
    "pinned",
    "registered",
    "host",
    "nowhere",
    "closed",
    "read_only",
    "room",
];

/// One object of each kind, in a context of its own, which is current.
pub(crate) struct World {
    api: Api,
    handles: Vec<usize>,
    /// The handles of the destroyed objects.
    dead: Vec<usize>,
    device: u64,
    freed: u64,
    managed: u64,
    pinned: u64,
    registered: Box<[u64; 1024]>,
    /// The first [`RESULTS`] words are for results, the last ones for kernel parameters.
    room: Room,
    image: &'static CStr,
    texts: Vec<(&'static str, CString)>,
    file: std::path::PathBuf,
    /// Structures that were passed to calls.
    given: RefCell<Vec<Given>>,
}

/// The names that functions are asked for, and a kernel that traps. Short, because thousands of worlds load
/// it twice each.
const KERNELS: &CStr = c"
.version 6.4
.target sm_70
.address_size 64
.visible .global .align 4 .u32 counter = 7;
.global .texref image;
.global .surfref picture;
.visible .entry count(.param .u64 at)
{
    .reg .b64 %at;
    ld.param.u64 %at, [at];
    red.global.add.u32 [%at], 1;
    ret;
}
.visible .entry stops() { trap; }
";

impl World {
    pub(crate) fn new(api: Api) -> Self {
        let image = KERNELS;
        static WORLDS: AtomicUsize = AtomicUsize::new(0);
        let number = WORLDS.fetch_add(1, Ordering::Relaxed);
        let file = std::env::temp_dir().join(format!("ptxvm-world-{}-{number}.ptx", std::process::id()));
        std::fs::write(&file, image.to_bytes()).expect("a file can be written");
        let path = file.to_str().expect("a plain path").to_owned();
        let texts = [
            ("x", "x"),
            ("count", "count"),
            ("counter", "counter"),
            ("image", "image"),
            ("picture", "picture"),
            ("nothing", "/dev/null"),
        ];
        let texts = texts.into_iter().chain([
            ("pci", "0000:01:00.0"),
            ("proc", "cuMemAlloc"),
            ("file", path.as_str()),
        ]);
        let texts = texts.map(|(name, text)| (name, CString::new(text).expect("no zero in it"))).collect();
        let mut world = Self {
            api,
            handles: Vec::new(),
            dead: Vec::new(),
            device: 0,
            freed: 0,
            managed: 0,
            pinned: 0,
            registered: Box::new([0; 1024]),
            room: Room::new(),
            image,
            texts,
            file,
            given: RefCell::default(),
        };
        let context = api.make("cuCtxCreate_v2", |out: *mut usize| (out, 0u32, 0i32));
        // Objects that are destroyed now have other handles later.
        world.dead = world.all_handles(context);
        let [_, stream, event, module, _, array, mipmap, _, _, link, graph, _, exec, pool, object, tex, surf] =
            world.dead[..]
        else {
            panic!("a handle is missing")
        };
        api.ok("cuTexObjectDestroy", (tex,));
        api.ok("cuSurfObjectDestroy", (surf,));
        let each = [
            ("cuGraphExecDestroy", exec),
            ("cuGraphDestroy", graph),
            ("cuStreamDestroy_v2", stream),
            ("cuEventDestroy_v2", event),
            ("cuModuleUnload", module),
            ("cuArrayDestroy", array),
            ("cuMipmappedArrayDestroy", mipmap),
            ("cuLinkDestroy", link),
            ("cuMemPoolDestroy", pool),
        ];
        for (name, handle) in each {
            api.ok(name, (handle,));
        }
        api.ok("cuUserObjectRelease", (object, 1u32));
        world.handles = world.all_handles(context);
        // A destroyed context.
        let gone = api.make("cuCtxCreate_v2", |out: *mut usize| (out, 0u32, 0i32));
        api.ok("cuCtxDestroy_v2", (gone,));
        world.dead[0] = gone;
        world.device = api.alloc(1 << 16);
        world.managed = api.make("cuMemAllocManaged", |out: *mut u64| (out, 4096usize, 1u32));
        world.pinned = api.make("cuMemHostAlloc", |out: *mut u64| (out, 4096usize, 0u32));
        // Later allocations reuse the start of it.
        let large = api.alloc(64 << 20);
        api.ok("cuMemFree_v2", (large,));
        world.freed = large + (60 << 20);
        api.ok("cuMemHostRegister_v2", (world.registered.as_ptr(), 4096usize, 0u32));
        // A list of one parameter, whose value is the device memory.
        world.room.write(VALUE, world.device as usize);
        world.room.write(PARAMS, world.room.word(VALUE));
        world.room.write(PARAMS + 1, 0);
        world
    }

    fn all_handles(&self, context: usize) -> Vec<usize> {
        let api = self.api;
        let make = |name: &str, flags: u32| api.make(name, |out: *mut usize| (out, flags));
        let (stream, event) = (make("cuStreamCreate", 0), make("cuEventCreate", 0));
        api.ok("cuEventRecord", (event, stream));
        let module = api.make("cuModuleLoadData", |out: *mut usize| (out, self.image.as_ptr()));
        let function = api.function(module, "count");
        let description = self.structure("array3d");
        let array = api.make("cuArray3DCreate_v2", |out: *mut usize| (out, description.as_ptr()));
        let mipmap = api.make("cuMipmappedArrayCreate", |out: *mut usize| (out, description.as_ptr(), 2u32));
        let texref = api.make("cuModuleGetTexRef", |out: *mut usize| (out, module, c"image".as_ptr()));
        let surfref = api.make("cuModuleGetSurfRef", |out: *mut usize| (out, module, c"picture".as_ptr()));
        let link = api.make("cuLinkCreate_v2", |out: *mut usize| (0u32, 0usize, 0usize, out));
        let graph = make("cuGraphCreate", 0);
        let node = api.make("cuGraphAddEmptyNode", |out: *mut usize| (out, graph, 0usize, 0usize));
        let exec = api.make("cuGraphInstantiateWithFlags", |out: *mut usize| (out, graph, 0usize));
        let properties = self.structure("pool");
        let pool = api.make("cuMemPoolCreate", |out: *mut usize| (out, properties.as_ptr()));
        let end = nothing as extern "C" fn(*mut c_void);
        let object = api.make("cuUserObjectCreate", |out: *mut usize| (out, 0usize, end, 1u32, 1u32));
        let mut resource = self.structure("zeros");
        resource[1] = array as u64;
        let sampling = self.structure("zeros");
        let tex = api
            .make("cuTexObjectCreate", |out: *mut usize| (out, resource.as_ptr(), sampling.as_ptr(), 0usize));
        let surf = api.make("cuSurfObjectCreate", |out: *mut usize| (out, resource.as_ptr()));
        vec![
            context, stream, event, module, function, array, mipmap, texref, surfref, link, graph, node,
            exec, pool, object, tex, surf,
        ]
    }

    /// Makes its context current.
    pub(crate) fn enter(&self) {
        let _destroyed_by_the_call_before = self.api.call("cuCtxSetCurrent", (self.handles[0],));
    }

    /// Makes a kernel trap in its context.
    pub(crate) fn strike(&self) {
        let stops = self.api.function(self.handles[3], "stops");
        let _trap = self.api.launch(stops, (1, 1), 0, 0);
        let _trap = self.api.call("cuCtxSynchronize", ());
    }

    /// Makes a kernel trap in its context, if the context and its module exist.
    pub(crate) fn strike_if_there(&self) {
        let mut stops = 0usize;
        if self.api.call("cuModuleGetFunction", (&raw mut stops, self.handles[3], c"stops".as_ptr())) == 0 {
            let _trap = self.api.launch(stops, (1, 1), 0, 0);
            let _trap = self.api.call("cuCtxSynchronize", ());
        }
    }

    /// All its handles.
    pub(crate) fn all(&self) -> &[usize] {
        &self.handles
    }

    /// Destroys its context on another thread, so that it stays current here.
    pub(crate) fn destroy_elsewhere(&self) {
        let (api, context) = (self.api, self.handles[0]);
        std::thread::spawn(move || api.ok("cuCtxDestroy_v2", (context,))).join().expect("no panic");
    }

    /// The names of its values: addresses, then handles, then destroyed handles.
    pub(crate) fn names() -> &'static [&'static str] {
        static NAMES: std::sync::OnceLock<Vec<&'static str>> = std::sync::OnceLock::new();
        NAMES.get_or_init(|| {
            let dead = |kind: &&str| &*format!("dead:{kind}").leak();
            ADDRESSES.iter().chain(HANDLES).copied().chain(HANDLES.iter().map(dead)).collect()
        })
    }

    /// A value by its name.
    pub(crate) fn named(&self, name: &str) -> usize {
        let [nowhere, closed, read_only] = pages();
        if let Some(kind) = name.strip_prefix("dead:") {
            let index = HANDLES.iter().position(|known| *known == kind);
            return self.dead[index.unwrap_or_else(|| panic!("no kind of handle is called `{kind}`"))];
        }
        match name {
            "device" => self.device as usize,
            // In the device's range, but not allocated.
            "wild" => self.device as usize + (9 << 30),
            "freed" => self.freed as usize,
            "managed" => self.managed as usize,
            "pinned" => self.pinned as usize,
            "registered" => self.registered.as_ptr().expose_provenance(),
            "host" => host(),
            "nowhere" => nowhere,
            "closed" => closed,
            "read_only" => read_only,
            "room" => self.room.word(0),
            kind => self.handle(kind),
        }
    }

    fn handle(&self, kind: &str) -> usize {
        let index = HANDLES.iter().position(|known| *known == kind);
        self.handles[index.unwrap_or_else(|| panic!("no kind of handle is called `{kind}`"))]
    }

    /// A valid structure.
    pub(crate) fn structure(&self, name: &str) -> Words {
        let mut words = [0u64; 40];
        let mut set = |values: &[u64]| words[..values.len()].copy_from_slice(values);
        let (from, to) = (self.device, self.device + 4096);
        let handle = |kind: &str| if self.handles.is_empty() { 0 } else { self.handle(kind) as u64 };
        let params = self.room.word(PARAMS) as u64;
        match name {
            "zeros" | "texture" => {}
            "one" => set(&[1]),
            "two" => set(&[2]),
            "node" => set(&[handle("node")]),
            "places" => set(&[self.room.word(0) as u64]),
            "targets" | "devplaces" => set(&[self.device]),
            "managedplaces" => set(&[self.managed]),
            "sizes" => set(&[64]),
            "four" => set(&[4]),
            "copy2d" => set(&[0, 0, 2, 0, from, 0, 16, 0, 0, 2, 0, to, 0, 16, 16, 4]),
            "copy3d" => {
                set(&[0, 0, 0, 0, 2, 0, from, 0, 0, 16, 4, 0, 0, 0, 0, 2, 0, to, 0, 0, 16, 4, 16, 4, 2])
            }
            "config" => set(&[1 | 1 << 32, 1 | 1 << 32, 1 | 1 << 32, 0, 0, 0, 0]),
            "array3d" => set(&[16, 16, 0, 32 | 1 << 32, 2]),
            "array" => set(&[16, 16, 32 | 1 << 32]),
            "hostnode" => set(&[(nothing as *const ()).expose_provenance() as u64, 0]),
            "kernelnode" => set(&[handle("function"), 1 | 1 << 32, 1 | 1 << 32, 1 | 1 << 32, 0, params, 0]),
            "location" => set(&[1]),
            "pool" => set(&[1, 1, 0, 0]),
            "writes" => set(&[2, from, 7, 0]),
            "prop" => set(&[1 | 1 << 32, 1]),
            "grant" => set(&[1, 3]),
            "resource" => set(&[0, handle("array")]),
            "allocnode" => set(&[1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 64, 0]),
            // An empty node, which only orders others.
            "anynode" => set(&[5]),
            // No operations, which have an address all the same.
            "batchnode" => set(&[0, 0, self.room.word(0) as u64]),
            "setnode" => set(&[from, 16, 4 << 32, 4, 1]),
            _ => panic!("no structure is called `{name}`"),
        }
        words
    }

    /// The address of a structure that lives as long as this value.
    pub(crate) fn give(&self, words: Words) -> usize {
        let given = Given::new(words);
        let address = given.address();
        self.given.borrow_mut().push(given);
        address
    }

    /// A valid argument for each parameter.
    pub(crate) fn right<'a>(&self, kinds: impl Iterator<Item = &'a Kind>) -> Vec<usize> {
        let mut out = 0;
        let right = |kind: &Kind| match kind {
            // Each result has its own room, with arbitrary contents.
            Kind::Out(_) => {
                out += 32;
                assert!(out + 32 <= RESULTS, "more results than there is room for");
                self.room.word(out)
            }
            Kind::InOut => self.give([0; 40]),
            Kind::In(name) => self.give(self.structure(name)),
            Kind::Text(name) => {
                let text = self.texts.iter().find(|(known, _)| known == name);
                text.unwrap_or_else(|| panic!("no text is called `{name}`")).1.as_ptr().expose_provenance()
            }
            Kind::Image => self.image.as_ptr().expose_provenance(),
            Kind::ImageSize => self.image.to_bytes_with_nul().len(),
            Kind::Host => host(),
            Kind::Code => (nothing as *const ()).expose_provenance(),
            Kind::Params => self.room.word(PARAMS),
            Kind::Device => self.device as usize,
            Kind::Managed => self.managed as usize,
            Kind::Pinned => self.pinned as usize,
            Kind::Registered => self.registered.as_ptr().expose_provenance(),
            Kind::Size(value) | Kind::Number(value) => *value,
            Kind::Handle(kind) => self.handle(kind),
        };
        kinds.map(right).collect()
    }

    /// The wrong arguments for a parameter, and whether the call must fail.
    pub(crate) fn wrong(&self, kind: &Kind) -> Vec<(usize, bool)> {
        let [nowhere, closed, read_only] = pages();
        let (wild, freed) = (self.named("wild"), self.named("freed"));
        let no_addresses = [0, 8, 0x1000, 0xfff8, 1 << 60, usize::MAX & !7];
        let must = |values: &[usize]| values.iter().map(|value| (*value, true)).collect::<Vec<_>>();
        let may = |values: &[usize]| values.iter().map(|value| (*value, false)).collect::<Vec<_>>();
        match kind {
            Kind::Params => must(&[&no_addresses[1..], &[wild, freed, 1]].concat()),
            Kind::Out(_) | Kind::InOut => {
                must(&[&no_addresses[..], &[nowhere, closed, read_only, wild, freed]].concat())
            }
            Kind::In(_) | Kind::Text(_) | Kind::Image | Kind::Host | Kind::Code => {
                let mut all = must(&[&no_addresses[..], &[nowhere, closed, wild, freed]].concat());
                if *kind == Kind::Host {
                    // Some functions write there, others read.
                    all.push((read_only, false));
                }
                all
            }
            Kind::Device | Kind::Managed | Kind::Pinned | Kind::Registered => {
                let mut all = must(&[1, 0x1000, freed, freed + 64, wild, nowhere, usize::MAX - 63, 1 << 47]);
                all.extend(may(&[0, self.device as usize + (1 << 16) - 1, self.device as usize + 1]));
                all
            }
            Kind::Size(_) | Kind::ImageSize => may(&[
                0,
                1,
                3,
                63,
                1 << 16,
                1 << 31,
                (1 << 32) - 1,
                1 << 33,
                1 << 47,
                1 << 48,
                1 << 60,
                usize::MAX / 2,
                usize::MAX - 3,
                usize::MAX,
            ]),
            Kind::Number(_) => may(&[
                0,
                1,
                2,
                3,
                4,
                5,
                6,
                7,
                8,
                9,
                10,
                16,
                32,
                100,
                255,
                256,
                1024,
                1025,
                65536,
                0x7fff_ffff,
                0x8000_0000,
                0xffff_fffe,
                0xffff_ffff,
                usize::MAX,
            ]),
            Kind::Handle(kind) => {
                let index = HANDLES.iter().position(|known| *known == kind.as_str()).unwrap_or(0);
                let mut all = must(&[3, usize::MAX, freed, nowhere, self.image.as_ptr().addr()]);
                // The handle of a texture or surface object is an address, which a later object may have.
                all.push((self.dead[index], !matches!(kind.as_str(), "tex" | "surf")));
                // 0, 1 and 2 are default streams.
                all.extend([0, 1, 2].map(|value| (value, kind != "stream")));
                let others = HANDLES.iter().zip(&self.handles).filter(|(other, _)| **other != kind.as_str());
                all.extend(others.map(|(_, handle)| (*handle, true)));
                all
            }
        }
    }

    /// A structure with one word wrong, in each way.
    pub(crate) fn structures(&self, kind: &Kind) -> Vec<Words> {
        let (name, words) = match kind {
            Kind::In(name) => (
                name.as_str(),
                match name.as_str() {
                    // The destination of a copy must be writable.
                    "targets" => 0,
                    "copy2d" => 16,
                    "copy3d" => 25,
                    "texture" => 13,
                    "resource" => 8,
                    _ => 7,
                },
            ),
            _ => return Vec::new(),
        };
        let [nowhere, closed, read_only] = pages();
        let mut values: Vec<u64> = vec![
            0,
            1,
            3,
            4,
            17,
            1 << 20,
            u32::MAX.into(),
            1 << 31,
            1 << 33,
            1 << 47,
            1 << 48,
            1 << 62,
            u64::MAX,
            u64::MAX / 16,
        ];
        values.extend([self.device, self.freed, self.device + (9 << 30), self.pinned]);
        values.extend([nowhere as u64, closed as u64, read_only as u64, self.room.word(0) as u64]);
        values.extend(self.handles.iter().chain(&self.dead).map(|handle| *handle as u64));
        let mut all = Vec::new();
        for word in 0..words {
            for value in &values {
                let mut changed = self.structure(name);
                changed[word] = *value;
                all.push(changed);
            }
            for half in [0u64, 1, 2, 3, 8, 16, 255, 0x7fff_ffff, 0xffff_ffff] {
                for (shift, keep) in [(0, 0xffff_ffff_0000_0000), (32, 0xffff_ffff)] {
                    let mut changed = self.structure(name);
                    changed[word] = changed[word] & keep | half << shift;
                    all.push(changed);
                }
            }
        }
        all
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _destroyed_by_a_call = self.api.call("cuCtxDestroy_v2", (self.handles[0],));
        let _not_there = std::fs::remove_file(&self.file);
    }
}
