//! Another process listens at the address of our server: it does not get the stored password.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex};

use crate::support::*;

/// Records what it receives, and answers as our server would.
struct Impostor {
    port: u16,
    heard: Arc<Mutex<String>>,
}

impl Impostor {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = Arc::new(Mutex::new(String::new()));
        let kept = Arc::clone(&heard);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                drop(hear(stream, &kept));
            }
        });
        Self { port, heard }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn heard(&self) -> String {
        self.heard.lock().unwrap().clone()
    }
}

fn hear(mut stream: TcpStream, heard: &Mutex<String>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        heard.lock().unwrap().push_str(&line);
        line.clear();
    }
    stream.write_all(
        b"HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Basic realm=\"Secure Area\"\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
    )
}

#[test]
fn the_kept_password_goes_to_our_own_server_only() {
    let world = World::new([done()]);
    let server = world.serve(&[]);
    let servers = world.store().with_file_name("servers");
    let ours = server.address.rsplit(':').next().unwrap();
    let announced = fs::read_to_string(servers.join(ours)).unwrap();
    let impostor = Impostor::new();
    let attach = |url: &str| world.run(&["--attach", url, "hi"]);
    let refused = |why: &str| {
        let done = attach(&impostor.url());
        assert_ne!(done.code, 0, "{why}");
        let heard = impostor.heard().to_lowercase();
        assert!(heard.contains("get /"), "{why}: nothing was asked: {heard}");
        assert!(!heard.contains("authorization"), "{why}: {heard}");
        done.stderr
    };

    let error = refused("nobody of ours ever listened there");
    assert!(error.contains("that you started"), "{error}");
    let place = servers.join(impostor.port.to_string());
    fs::copy(servers.join(ours), &place).unwrap();
    refused("our server lives, and that is not its socket");
    let dead = announced.replace(&server.running.pid().to_string(), "4194303");
    fs::write(&place, dead).unwrap();
    refused("the server that listened there was killed");

    assert_eq!(attach(&server.url()).ok().stdout, "All done.\n");
    // A given password is meant for the address given with it.
    world.run_with(
        &[("OPENCODE_SERVER_PASSWORD", "told by the user")],
        &["--attach", &impostor.url(), "hi"],
    );
    assert!(
        impostor
            .heard()
            .to_lowercase()
            .contains("authorization: basic")
    );
    let file = servers.join(ours);
    server.stop().exited(143);
    assert!(!file.exists(), "a server that ends is announced no more");
}

/// A killed server leaves the file that opened its page in a browser. The token in it is valid only for that server's
/// lifetime.
#[test]
fn what_a_killed_server_left_for_a_browser_goes_with_the_next_one() {
    let world = World::new([done()]);
    let leftover = world.store().with_file_name("web-4194303.html");
    fs::create_dir_all(leftover.parent().unwrap()).unwrap();
    fs::write(&leftover, "of a server that was killed").unwrap();
    let server = world.serve(&[]);
    assert!(!leftover.exists());
    // Anyone may ask for the server's identity, which changes with each start.
    let who = |server: &Server| server.get("/outrigger/web/session").json(200)["instance"].clone();
    let first = who(&server);
    assert!(first.is_string());
    server.kill();
    let second = world.serve(&[]);
    assert_ne!(who(&second), first);
    let key = world.store().with_file_name("server-page-key");
    assert_eq!(
        fs::metadata(key).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(second.get("/outrigger/web/session/key").status, 401);
}
