//! Killed with SIGKILL at every named point, the next `run -c` goes on to the end, and what was done is done once.
use crate::support::*;
use serde_json::json;

#[test]
fn trial() {
    let world = World::with(Mock::new([
        turn([call("read", json!({"filePath": "hello.txt"}))]),
        turn([call("bash", json!({"command": "echo did >> effects.txt", "description": "x"}))]),
        done(),
    ]).by_results());
    world.plugin("pid", "export const P = async (ctx) => { const fs = await import('node:fs'); fs.appendFileSync(ctx.directory + '/pids', process.pid + '\\n'); return { 'chat.message': async () => {} } }");
    let t = std::time::Instant::now();
    let done = world.run(&["do", "it"]);
    eprintln!("{:?} {done:?}", t.elapsed());
    eprintln!("{}", world.read("effects.txt"));
    eprintln!("{}", world.read("pids"));
    let t = std::time::Instant::now();
    eprintln!("{} {:?}", world.verify(), t.elapsed());
    let t = std::time::Instant::now();
    eprintln!("{:?} {:?}", world.run(&["--pure", "x"]), t.elapsed());
}
