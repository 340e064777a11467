//! The registered tools, with their constraints and providers.

use std::sync::Arc;

use outrigger_protocol::descriptor::{Constraints, Declared, ToolDescriptor};
use outrigger_protocol::tool::ToolSpec;
use outrigger_stdx::sync;

use super::{Listener, ToolRuntime};
use crate::error::ToolError;
use crate::routes::Routes;
use crate::schema::{OutputSchema, Schema};
use crate::tool::Tool;

#[derive(Clone)]
pub(super) struct Entry {
    pub(super) tool: Arc<dyn Tool>,
    pub(super) schema: Arc<Schema>,
    pub(super) output: Option<Arc<OutputSchema>>,
    pub(super) descriptor: Arc<ToolDescriptor>,
    /// It opens files only through the path guard.
    rooted: bool,
    /// Roots in addition to those of the descriptor.
    pub(super) held: Vec<Vec<String>>,
}

impl ToolRuntime {
    /// Adds a tool, replacing an earlier one of the same name (OpenCode's rule: a plugin's `bash` replaces ours and keeps its
    /// position in the order).
    ///
    /// # Errors
    /// [`ToolError::BadSchema`] if the parameters are not a JSON Schema that can be checked here, [`ToolError::BadDescriptor`]
    /// if its declaration is invalid (D6).
    pub fn register(&self, tool: Arc<dyn Tool>) -> Result<(), ToolError> {
        let declared = tool.declares();
        let bad = |reason| ToolError::BadSchema {
            tool: tool.spec().name.clone(),
            reason,
        };
        let schema = Schema::compile(tool.argument_schema()).map_err(bad)?;
        let output = declared
            .output_schema
            .as_ref()
            .map(OutputSchema::compile)
            .transpose()
            .map_err(bad)?;
        self.register_as(tool, schema, output, declared, false)
    }

    /// Like [`Self::register`], for a bundled tool, which does not declare itself. `rooted`: it opens files only through the
    /// path guard.
    ///
    /// # Errors
    /// [`ToolError::BadDescriptor`], as for [`ToolRuntime::register`].
    pub(crate) fn register_bundled(
        &self,
        tool: Arc<dyn Tool>,
        declared: Declared,
        rooted: bool,
    ) -> Result<(), ToolError> {
        let schema = Schema::of_bundled(tool.argument_schema());
        let output = declared
            .output_schema
            .as_ref()
            .map(OutputSchema::of_bundled);
        let name = tool.spec().name.clone();
        self.register_as(tool, schema, output, declared, rooted)?;
        sync::write(&self.bundled).extend(self.find(&name));
        Ok(())
    }

    fn register_as(
        &self,
        tool: Arc<dyn Tool>,
        schema: Schema,
        output: Option<OutputSchema>,
        declared: Declared,
        rooted: bool,
    ) -> Result<(), ToolError> {
        let spec = tool.spec().clone();
        let descriptor = ToolDescriptor { spec, declared };
        checked(&descriptor, rooted)?;
        self.put(Entry {
            schema: Arc::new(schema),
            output: output.map(Arc::new),
            descriptor: Arc::new(descriptor),
            rooted,
            held: Vec::new(),
            tool,
        });
        Ok(())
    }

    fn put(&self, entry: Entry) {
        let name = &entry.descriptor.spec.name;
        let mut entries = self.write();
        match entries.iter_mut().find(|e| e.descriptor.spec.name == *name) {
            Some(old) => *old = entry,
            None => entries.push(entry),
        }
    }

    /// Restricts a tool to less than it declares: the shorter time, fewer retries, and roots besides its own.
    ///
    /// # Errors
    /// [`ToolError::NotFound`]; [`ToolError::BadDescriptor`] if nothing would enforce the roots.
    pub fn narrow(&self, tool: &str, to: &Constraints) -> Result<(), ToolError> {
        let mut entry = self.find(tool).ok_or_else(|| ToolError::NotFound {
            tool: tool.to_owned(),
            available: self.specs().into_iter().map(|s| s.name).collect(),
        })?;
        let mut descriptor = ToolDescriptor::clone(&entry.descriptor);
        let own = &mut descriptor.declared.constraints;
        own.timeout_ms = [own.timeout_ms, to.timeout_ms].into_iter().flatten().min();
        own.max_retries = own.max_retries.min(to.max_retries);
        own.deterministic_hooks |= to.deterministic_hooks;
        for (roots, more) in [
            (&mut own.allowed_read_roots, &to.allowed_read_roots),
            (&mut own.allowed_write_roots, &to.allowed_write_roots),
        ] {
            let Some(more) = more else { continue };
            entry.held.extend(roots.replace(more.clone()));
        }
        checked(&descriptor, entry.rooted)?;
        entry.descriptor = Arc::new(descriptor);
        self.put(entry);
        Ok(())
    }

    /// Binds contracts to providers, replacing earlier bindings.
    pub fn bind(&self, routes: Routes) {
        *sync::write(&self.routes) = Arc::new(routes);
    }

    /// From now on `listener` gets every stage of every call.
    pub fn listen(&self, listener: Listener) {
        let mut listeners = sync::write(&self.listeners);
        Arc::make_mut(&mut listeners).push(listener);
    }

    /// Returns the tools in full, in registry order, including hidden ones.
    #[must_use]
    pub fn descriptors(&self) -> Vec<Arc<ToolDescriptor>> {
        let entries = self.read();
        entries.iter().map(|e| Arc::clone(&e.descriptor)).collect()
    }

    /// Keeps a name for tools of the user's plugins and servers until the program ends, also while they are away.
    pub fn keep_for_user(&self, name: &str) {
        sync::write(&self.users).insert(name.to_owned());
    }

    /// Returns whether no tool of a project may have this name.
    #[must_use]
    pub fn is_kept_for_user(&self, name: &str) -> bool {
        sync::read(&self.users).contains(name)
    }

    /// Removes every tool of a source (`plugin:ID`, `mcp:NAME`).
    pub fn remove_source(&self, source: &str) {
        self.write().retain(|e| e.tool.spec().source != source);
    }

    /// Keeps the tools for which `keep` is true; running calls continue.
    pub fn retain(&self, keep: impl Fn(&ToolSpec) -> bool) {
        self.write().retain(|entry| keep(entry.tool.spec()));
    }

    /// Copies the tools of another runtime whose names are not registered here.
    pub fn fill(&self, other: &Self) {
        let mut entries = self.write();
        for entry in other.read().iter() {
            let name = &entry.tool.spec().name;
            if !entries.iter().any(|it| it.tool.spec().name == *name) {
                entries.push(entry.clone());
            }
        }
    }

    /// Returns the specifications of the tools, in registry order, including hidden ones.
    #[must_use]
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.read().iter().map(|e| e.tool.spec().clone()).collect()
    }

    /// Returns the tool of that name, in full.
    #[must_use]
    pub fn descriptor(&self, name: &str) -> Option<Arc<ToolDescriptor>> {
        self.find(name).map(|e| e.descriptor)
    }

    /// Returns the specification of that name.
    #[must_use]
    pub fn spec(&self, name: &str) -> Option<ToolSpec> {
        self.find(name).map(|e| e.tool.spec().clone())
    }

    /// Returns whether no tool from outside is registered under this name. A call of a tool that does not exist does nothing.
    #[must_use]
    pub fn is_ours(&self, name: &str) -> bool {
        self.spec(name)
            .is_none_or(|spec| spec.source == crate::builtin::SOURCE)
    }

    pub(super) fn find(&self, name: &str) -> Option<Entry> {
        self.read()
            .iter()
            .find(|e| e.descriptor.spec.name == name)
            .cloned()
    }

    /// Returns the bundled tool of that name, whatever is registered in its place.
    pub(super) fn find_bundled(&self, name: &str) -> Option<Entry> {
        let bundled = sync::read(&self.bundled);
        let mut named = bundled.iter().filter(|e| e.descriptor.spec.name == name);
        named.next_back().cloned()
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Vec<Entry>> {
        sync::read(&self.entries)
    }
    fn write(&self) -> std::sync::RwLockWriteGuard<'_, Vec<Entry>> {
        sync::write(&self.entries)
    }
}

fn checked(descriptor: &ToolDescriptor, rooted: bool) -> Result<(), ToolError> {
    match descriptor.problems(rooted).into_iter().next() {
        None => Ok(()),
        Some(problem) => Err(ToolError::BadDescriptor {
            tool: descriptor.spec.name.clone(),
            key: problem.key,
            reason: problem.message,
        }),
    }
}

#[cfg(test)]
mod tests {
    use jsonschema::Draft;

    use crate::ToolRuntime;
    use crate::builtin::{self, Options};

    /// They are compiled on first use, where an error could no longer be handled.
    #[test]
    fn every_bundled_schema_compiles() {
        let runtime = ToolRuntime::new();
        let options = Options {
            lsp: true,
            ..Options::default()
        };
        builtin::register_all(&runtime, &options).unwrap();
        let entries = runtime.read();
        assert!(entries.len() > 10);
        for entry in entries.iter() {
            let output = entry.descriptor.declared.output_schema.as_ref();
            for schema in output.into_iter().chain([entry.tool.argument_schema()]) {
                jsonschema::validator_for(schema).unwrap();
                let options = jsonschema::options().with_draft(Draft::Draft7);
                options.build(schema).unwrap();
            }
        }
    }
}
