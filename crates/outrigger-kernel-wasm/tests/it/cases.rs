//! A kernel that is asked in JSON, and writes down what it was asked and answered where that is wanted.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use outrigger_kernel_wasm::Kernel;
use serde_json::{Value, json};

pub(crate) struct Asked {
    kernel: Kernel,
    name: &'static str,
    calls: Vec<(String, String)>,
}

impl Asked {
    /// `name`: the file that its calls go to.
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            kernel: Kernel::new(),
            name,
            calls: vec![],
        }
    }

    pub(crate) fn call(&mut self, op: &str, with: Value) -> Result<Value, String> {
        self.request(json!({ "op": op, "with": with }).to_string())
    }

    /// A turn from its stored steps.
    pub(crate) fn open(&mut self, steps: &[&str]) -> Result<Value, String> {
        let request = json!({ "op": "turn.open", "with": {} }).to_string();
        self.request(format!("{request}\n{}", steps.join("\n")))
    }

    fn request(&mut self, request: String) -> Result<Value, String> {
        let answer = String::from_utf8(self.kernel.call(request.as_bytes())).unwrap();
        let mut read: Value = serde_json::from_str(&answer).unwrap();
        self.calls.push((request, answer));
        match read.get("error") {
            Some(error) => Err(error["code"].as_str().unwrap().to_owned()),
            None => Ok(read["ok"].take()),
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let Some(folder) = std::env::var_os("OUTRIGGER_KERNEL_CASES") else {
            return;
        };
        fs::create_dir_all(&folder).unwrap();
        let file = Path::new(&folder).join(format!("{}.jsonl", self.name));
        let mut file = File::options()
            .create(true)
            .append(true)
            .open(file)
            .unwrap();
        writeln!(file, "{}", json!(self.calls)).unwrap();
    }
}
