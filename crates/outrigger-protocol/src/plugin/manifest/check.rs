//! Validation of a manifest.

use super::{Manifest, ManifestProblem, RESERVED_IDS, custom_points, subplugins};

impl Manifest {
    /// Returns its problems, the first of each key.
    #[must_use]
    pub fn problems(&self) -> Vec<ManifestProblem> {
        let mut found = Problems(Vec::new());
        found.in_identity(self);
        found.in_permissions(self);
        found.in_requirements(self);
        let never = self.hook_policy.max_timeout_ms == Some(0);
        found.add_if(
            "hook_policy.max_timeout_ms",
            never.then_some("0"),
            "is not a time",
        );
        let mut found = found.0;
        found.extend(custom_points::problems(self));
        found.extend(subplugins::problems(self));
        found
    }
}

struct Problems(Vec<ManifestProblem>);

impl Problems {
    fn add_if(&mut self, key: &'static str, wrong: Option<&str>, what: &str) {
        if let Some(wrong) = wrong {
            self.0.push(ManifestProblem {
                key,
                message: format!("{wrong:?} {what}"),
            });
        }
    }

    /// Adds the first problem of a list.
    fn add_first(
        &mut self,
        key: &'static str,
        list: &[String],
        is_right: fn(&str) -> bool,
        what: &str,
    ) {
        let wrong = list.iter().find(|it| !is_right(it));
        self.add_if(key, wrong.map(String::as_str), what);
    }

    fn in_identity(&mut self, manifest: &Manifest) {
        let id = Some(manifest.id.as_str());
        self.add_if("id", id.filter(|id| !is_id(id)), "is not an id");
        let reserved = id.filter(|id| RESERVED_IDS.contains(id));
        let what = "is the id of a bundled plugin that is required";
        self.add_if("id", reserved, what);
        let version = Some(manifest.version.as_str());
        let odd = version.filter(|it| !is_version(it));
        self.add_if("version", odd, "is not a version");
        let entry = manifest.entry.as_deref();
        let outside = entry.filter(|it| !is_inside(it));
        self.add_if("entry", outside, "does not lie inside of the package");
        self.add_first("depends_on", &manifest.depends_on, is_id, "is not an id");
    }

    fn in_permissions(&mut self, manifest: &Manifest) {
        let permissions = &manifest.permissions;
        for (key, list) in [
            ("permissions.files.read", &permissions.files.read),
            ("permissions.files.write", &permissions.files.write),
        ] {
            let what = "is neither ${project} nor a path below it, nor an absolute path";
            self.add_first(key, list, is_root, what);
        }
        for (key, list, is_right) in [
            (
                "permissions.env",
                &permissions.env,
                is_pattern as fn(&str) -> bool,
            ),
            ("permissions.secrets", &permissions.secrets, is_variable),
        ] {
            self.add_first(key, list, is_right, "is not the name of a variable");
        }
        let routes = permissions.client.as_deref().unwrap_or_default();
        let what = "is not a route, as `GET /session/*`";
        self.add_first("permissions.client", routes, is_route, what);
        let programs = permissions.processes.as_deref().unwrap_or_default();
        let named = |it: &str| !it.is_empty() && (!it.contains('/') || it.starts_with('/'));
        let what = "is neither the name of a program nor an absolute path";
        self.add_first("permissions.processes", programs, named, what);
        let zero = permissions.network.listen.contains(&0);
        let what = "is not a port to be granted";
        self.add_if("permissions.network.listen", zero.then_some("0"), what);
    }

    fn in_requirements(&mut self, manifest: &Manifest) {
        let requirements = &manifest.requirements;
        for (key, list) in [
            ("requirements.env", &requirements.env),
            ("requirements.env_any", &requirements.env_any.concat()),
        ] {
            self.add_first(key, list, is_variable, "is not the name of a variable");
        }
        let programs = &requirements.external_bins;
        let named = |it: &str| !it.is_empty() && !it.contains('/');
        let what = "is not the name of a program";
        self.add_first("requirements.external_bins", programs, named, what);
    }
}

fn is_id(id: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_./@:".contains(c);
    !id.is_empty() && id.len() <= 214 && id.chars().all(fits) && !id.contains("..")
}

fn is_version(version: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || ".-+".contains(c);
    version.starts_with(|c: char| c.is_ascii_digit()) && version.chars().all(fits)
}

pub(super) fn is_inside(path: &str) -> bool {
    !path.is_empty()
        && !path.starts_with('/')
        && !path.contains('\0')
        && path.split('/').all(|part| part != "..")
}

/// Returns whether it is `${project}`, a path below it, or a path outside that requires a grant: absolute, or
/// in the home folder.
fn is_root(path: &str) -> bool {
    let outside = path.strip_prefix("~/").or_else(|| path.strip_prefix('/'));
    match (path.strip_prefix("${project}"), outside) {
        (Some(""), _) => true,
        (Some(rest), _) => rest.strip_prefix('/').is_some_and(is_inside),
        (None, Some(rest)) => is_inside(rest),
        (None, None) => is_inside(path) && !path.contains('$') && !path.starts_with('~'),
    }
}

fn is_variable(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(fits) && !name.starts_with(|c: char| c.is_ascii_digit())
}

fn is_pattern(name: &str) -> bool {
    match name.strip_suffix('*') {
        Some("") => true,
        Some(start) => is_variable(start),
        None => is_variable(name),
    }
}

fn is_route(route: &str) -> bool {
    match route.split_once(' ') {
        Some((method, path)) => {
            ["*", "GET", "POST", "PUT", "PATCH", "DELETE"].contains(&method)
                && path.starts_with('/')
                && !path.contains(' ')
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn put(object: &mut Value, key: &str, value: Value) {
        match key.split_once('.') {
            Some((first, rest)) => put(&mut object[first], rest, value),
            None => object[key] = value,
        }
    }

    #[test]
    fn problems_by_table() {
        for (key, value, wrong) in [
            ("id", json!("a/b@c.d"), false),
            ("id", json!("../a"), true),
            ("id", json!("a b"), true),
            ("id", json!("builtin-tools"), true),
            ("version", json!("latest"), true),
            ("entry", json!("dist/a.js"), false),
            ("entry", json!("a/../../b"), true),
            (
                "permissions.files.read",
                json!(["${project}/a", "b/c", "${project}"]),
                false,
            ),
            (
                "permissions.files.read",
                json!(["/opt/acme", "~/notes"]),
                false,
            ),
            ("permissions.files.read", json!(["/opt/../etc"]), true),
            ("permissions.files.read", json!(["~"]), true),
            ("permissions.files.read", json!(["~root/x"]), true),
            (
                "permissions.processes",
                json!(["git", "/usr/bin/rg"]),
                false,
            ),
            ("permissions.processes", json!(["./run"]), true),
            ("permissions.files.read", json!(["${project}x"]), true),
            ("permissions.files.read", json!(["${home}"]), true),
            ("permissions.files.write", json!(["a/../../b"]), true),
            ("permissions.env", json!(["*", "A_*", "A"]), false),
            ("permissions.env", json!(["*A"]), true),
            ("permissions.secrets", json!(["A_*"]), true),
            (
                "permissions.client",
                json!(["GET /session/*", "* /log"]),
                false,
            ),
            ("permissions.client", json!(["/session"]), true),
            ("permissions.network.listen", json!([0]), true),
            ("requirements.external_bins", json!(["/bin/sh"]), true),
            ("hook_policy.max_timeout_ms", json!(0), true),
        ] {
            let mut manifest = json!({"id": "a", "version": "1.0", "kind": "hook"});
            put(&mut manifest, key, value.clone());
            let manifest: Manifest = serde_json::from_value(manifest).unwrap();
            let problems = manifest.problems();
            assert_eq!(
                problems.first().map(|it| it.key),
                wrong.then_some(key),
                "{key} {value}"
            );
        }
        assert_eq!(Manifest::inferred("a", None).problems(), []);
    }
}
