//! The end of an answer, and the names of models.

use std::collections::HashMap;
use std::sync::Arc;

use outrigger_protocol::Millis;
use outrigger_protocol::message::AssistantMessage;

/// The end of an answer: who gave it, and how long that took.
#[derive(Debug)]
pub struct Footer {
    agent: String,
    /// Provider and model.
    model: (String, String),
    /// The model as people know it.
    name: String,
    /// Milliseconds.
    took: Option<u64>,
}

impl Footer {
    /// Creates the end of an answer to a prompt that was written at this time, if that is known.
    #[must_use]
    pub fn of(answer: &AssistantMessage, asked: Option<Millis>, names: &ModelNames) -> Self {
        let (provider, model) = (answer.provider_id.clone(), answer.model_id.clone());
        let end = answer.time.completed;
        Self {
            agent: answer.agent.clone(),
            name: names.of(&provider, &model).to_owned(),
            model: (provider, model),
            took: end.map(|end| end.saturating_sub(asked.unwrap_or(answer.time.created))),
        }
    }

    /// Names its model anew; returns whether the text changed.
    pub fn name_model(&mut self, names: &ModelNames) -> bool {
        let (provider, model) = &self.model;
        let name = names.of(provider, model);
        let is_new = self.name != name;
        if is_new {
            self.name = name.to_owned();
        }
        is_new
    }

    /// Returns its text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("{} · {}", self.agent, self.name);
        if let Some(took) = self.took {
            text.push_str(&format!(" · {}.{} s", took / 1000, took % 1000 / 100));
        }
        text
    }
}

/// Names of models as people know them, by `provider/model`.
#[derive(Clone, Debug, Default)]
pub struct ModelNames(Arc<HashMap<String, String>>);

impl ModelNames {
    /// Returns the name of a model, or its id if it has none.
    #[must_use]
    pub fn of<'a>(&'a self, provider: &str, model: &'a str) -> &'a str {
        self.0
            .get(&format!("{provider}/{model}"))
            .map_or(model, String::as_str)
    }
}

impl FromIterator<(String, String)> for ModelNames {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(names: I) -> Self {
        Self(Arc::new(names.into_iter().collect()))
    }
}
