//! The kernel as WebAssembly: its compiler, its size, and its equality with the native one.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::sh::{self, cargo, check, command, there};
use crate::{Result, failed, setup};

const TARGET: &str = "wasm32-unknown-unknown";
const CRATE: &str = "outrigger-kernel-wasm";
/// The linker of Debian 12's package `lld-19`.
const DEBIAN_LINKER: &str = "/usr/bin/wasm-ld-19";
/// Debian's compiler with the sources of the standard library for wasm32.
const DEBIAN_PACKAGES: [&str; 3] = ["rustc-web", "rust-web-src", "lld-19"];
/// Debian's compiler, run by rustup's cargo.
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
/// The maximum size of the module in bytes, uncompressed and with gzip, with Debian's compiler.
const MAX_SIZE: (u64, u64) = (1_000_000, 300_000);
/// The same with rustup's compiler, which is of any version.
const MAX_RUSTUP_SOURCE_SIZE: (u64, u64) = (1_000_000, 310_000);
/// The same with rustup's standard library, which is built with texts for panics.
const MAX_RUSTUP_SIZE: (u64, u64) = (1_100_000, 420_000);
/// The current maximum without the optimiser, with either compiler.
const MAX_PLAIN_SIZE: (u64, u64) = (1_350_000, 460_000);
/// Flags of the compiler.
const RUSTFLAGS: &str = "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS";
/// A panic ends the module either way, and its message would go nowhere.
const IMMEDIATE_ABORT: [&str; 2] = ["-Zunstable-options", "-Cpanic=immediate-abort"];
/// SHA-256 as a loop, a fifth of the code of the unrolled form. What is hashed there is a few records for each step.
const SMALL_SHA: &str = "--cfg=sha2_backend_soft=\"compact\"";
/// The optimiser: `wasm-opt`, from `binaryen`, a package that only the build of the extension needs.
const OPTIMISER: &str = "extension/node_modules/.bin/wasm-opt";
/// Features of every Chromium that the extension runs in. `--all-features` emits some that no browser has.
const OPTIMISER_FLAGS: [&str; 13] = [
    "--strip-debug",
    "-Oz",
    "--converge",
    // After the others. Functions that are called more get smaller numbers.
    "--reorder-functions",
    "--strip-producers",
    "--strip-target-features",
    // Functions with one caller that stay apart are alike, which compresses better.
    "--one-caller-inline-max-function-size=0",
    "--enable-bulk-memory",
    "--enable-sign-ext",
    "--enable-mutable-globals",
    "--enable-nontrapping-float-to-int",
    "--enable-reference-types",
    "--enable-multivalue",
];

/// Which build of the native tests is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NativeTests {
    /// That of their crate alone.
    OfTheCrate,
    /// That of the workspace, which CI has already. Alone they would be compiled again, with fewer features of dependencies.
    OfTheWorkspace,
}

/// Builds the kernel, prints its size and compares it with the native one.
pub(super) fn checked(toolchain: Toolchain, native: NativeTests) -> Result<PathBuf> {
    let built = build(toolchain)?;
    // The optimiser and the native tests run at the same time.
    let (kernel, cases) = std::thread::scope(|scope| {
        let kernel = scope.spawn(|| shrunk(toolchain, built));
        let cases = cases(native);
        (kernel.join(), cases)
    });
    let kernel = kernel.or_else(|_| failed("the kernel was not made smaller"))??;
    compare(&kernel, &cases?)?;
    Ok(kernel)
}

/// Returns what to install if nothing compiles for wasm32.
pub(super) fn advice() -> String {
    format!(
        "there is no compiler for {TARGET}: `rustup target add {TARGET}`, or on Debian `apt-get install --no-install-recommends {}`",
        DEBIAN_PACKAGES.join(" ")
    )
}

/// A compiler for wasm32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Toolchain {
    /// The target of rustup's toolchain.
    Rustup,
    /// The same with its component `rust-src`: it builds the standard library as well.
    RustupSource,
    /// Debian's compiler, which also builds the standard library.
    Debian,
}

impl Toolchain {
    /// Returns an installed one, or installs one.
    pub(super) fn find() -> Option<Self> {
        // Debian's first: its version, and so the size of the module, is the same everywhere.
        if !has_debian() && setup::is_root() && there("apt-get") {
            let _ = setup::install_packages(&DEBIAN_PACKAGES);
        }
        if has_debian() {
            return Some(Self::Debian);
        }
        if !has_target() {
            for wanted in [["target", "add", TARGET], ["component", "add", "rust-src"]] {
                // An unresponsive network must not block this.
                let mut rustup = command("timeout");
                let _ = sh::output(rustup.args(["60", "rustup"]).args(wanted));
            }
        }
        let builds = has_source();
        has_target().then_some(if builds {
            Self::RustupSource
        } else {
            Self::Rustup
        })
    }

    fn says(self) -> &'static str {
        match self {
            Self::Rustup => "rustup's target (smaller with `rustup component add rust-src`)",
            Self::RustupSource => "rustup's target, and the standard library as well",
            Self::Debian => "Debian's rustc-web, which builds the standard library as well",
        }
    }

    fn cargo(self) -> Command {
        let mut cargo = cargo(&["rustc", "--quiet", "--package", CRATE, "--lib"]);
        cargo.args([
            "--crate-type",
            "cdylib",
            "--profile",
            "wasm",
            "--target",
            TARGET,
        ]);
        cargo.arg("--target-dir").arg(sh::work("wasm"));
        cargo.env(RUSTFLAGS, SMALL_SHA);
        if self != Self::Rustup {
            let immediate = IMMEDIATE_ABORT.join(" ");
            cargo
                .arg("-Zbuild-std=std,panic_abort")
                .arg("-Zbuild-std-features=optimize_for_size")
                .env("RUSTC_BOOTSTRAP", "1")
                .env(RUSTFLAGS, format!("{SMALL_SHA} {immediate}"));
        }
        if self == Self::Debian {
            cargo
                .env("RUSTC", DEBIAN_RUSTC)
                .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", DEBIAN_LINKER);
        }
        cargo
    }
}

fn has_target() -> bool {
    let mut rustc = command("rustc");
    let library = sh::output(rustc.args(["--print", "target-libdir", "--target", TARGET]));
    library.is_ok_and(|path| Path::new(path.trim()).is_dir())
}

fn has_debian() -> bool {
    builds_library(&mut command(DEBIAN_RUSTC)) && Path::new(DEBIAN_LINKER).exists()
}

/// Returns whether rustup's compiler can build the standard library.
fn has_source() -> bool {
    builds_library(&mut command("rustc"))
}

/// Returns whether a compiler has the sources of the standard library and knows the way in which it is to panic.
fn builds_library(rustc: &mut Command) -> bool {
    rustc.args(IMMEDIATE_ABORT).args(["--print", "sysroot"]);
    let root = sh::output(rustc.env("RUSTC_BOOTSTRAP", "1"));
    root.is_ok_and(|root| {
        let source = Path::new(root.trim()).join("lib/rustlib/src/rust/library/std");
        source.is_dir()
    })
}

/// Builds the module.
fn build(toolchain: Toolchain) -> Result<PathBuf> {
    println!("extension: the kernel is built with {}", toolchain.says());
    check(&mut toolchain.cargo())?;
    let built = sh::work("wasm")
        .join(TARGET)
        .join("wasm/outrigger_kernel_wasm.wasm");
    Ok(built)
}

/// Returns the module that is loaded: optimised, if the optimiser is installed. Prints its size.
fn shrunk(toolchain: Toolchain, built: PathBuf) -> Result<PathBuf> {
    let optimiser = sh::root().join(OPTIMISER);
    let (kernel, max) = match (optimiser.exists(), toolchain) {
        (true, Toolchain::Debian) => (optimised(&optimiser, &built)?, MAX_SIZE),
        (true, Toolchain::RustupSource) => (optimised(&optimiser, &built)?, MAX_RUSTUP_SOURCE_SIZE),
        (true, Toolchain::Rustup) => (optimised(&optimiser, &built)?, MAX_RUSTUP_SIZE),
        (false, _) => (built, MAX_PLAIN_SIZE),
    };
    let (plain, packed) = sizes(&kernel)?;
    println!(
        "extension: the kernel has {plain} bytes, {packed} with gzip (at most {}, {})",
        max.0, max.1
    );
    if plain > max.0 || packed > max.1 {
        return failed(format!(
            "the kernel may have {} bytes, {} with gzip",
            max.0, max.1
        ));
    }
    Ok(kernel)
}

/// Optimises a module, unless its optimised form is newer.
fn optimised(optimiser: &Path, built: &Path) -> Result<PathBuf> {
    let kernel = built.with_file_name("kernel.wasm");
    let changed = |file: &Path| fs::metadata(file).and_then(|it| it.modified()).ok();
    if changed(&kernel).is_none_or(|it| Some(it) < changed(built)) {
        let mut node = command("node");
        node.arg(optimiser).args(OPTIMISER_FLAGS);
        let unfinished = built.with_file_name("kernel.unfinished");
        check(node.arg(built).arg("-o").arg(&unfinished))?;
        let moved = fs::rename(&unfinished, &kernel);
        moved.or_else(|error| failed(format!("{}: {error}", kernel.display())))?;
    }
    Ok(kernel)
}

fn sizes(file: &Path) -> Result<(u64, u64)> {
    let plain = fs::metadata(file)
        .map(|it| it.len())
        .or_else(|error| failed(format!("{}: {error}", file.display())))?;
    let packs = "process.stdout.write(String(require('zlib').gzipSync(require('fs').readFileSync(process.argv[1]), {level: 9}).length))";
    let packed = sh::output(
        command("node")
            .args([OsStr::new("-e"), OsStr::new(packs)])
            .arg(file),
    )?;
    match packed.trim().parse() {
        Ok(packed) => Ok((plain, packed)),
        Err(_) => failed(format!(
            "node says that {} has {packed} bytes",
            file.display()
        )),
    }
}

/// Writes the cases generated by the crate's tests, with the answers of the native kernel.
fn cases(native: NativeTests) -> Result<PathBuf> {
    let cases = sh::work("kernel-cases");
    // Drop the results of an earlier run, if there are any.
    let _ = fs::remove_dir_all(&cases);
    let is_whole = native == NativeTests::OfTheWorkspace;
    let mut tests = if is_whole && sh::output(&mut cargo(&["nextest", "--version"])).is_ok() {
        let only = format!("package({CRATE}) & binary(it)");
        let mut tests = cargo(&["nextest", "run", "--workspace", "--status-level", "none"]);
        tests.args(["--final-status-level", "fail", "-E", &only]);
        tests
    } else {
        cargo(&["test", "--quiet", "--package", CRATE, "--test", "it"])
    };
    check(tests.env("OUTRIGGER_KERNEL_CASES", &cases))?;
    Ok(cases)
}

/// Runs the same cases in the module.
fn compare(kernel: &Path, cases: &Path) -> Result {
    let mut node = command("node");
    node.arg("crates/outrigger-kernel-wasm/tests/laws.mjs");
    check(node.arg(kernel).arg(cases))
}
