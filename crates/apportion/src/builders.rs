//! The builder methods that a run, a league and a reproduction share, each with the documentation of its
//! type.

/// Defines methods that set the fields of the same names: `builders! { Run: /// … seeds, /// … jobs }`.
macro_rules! builders {
    ($type:ident: $($(#[$doc:meta])* $option:ident),+ $(,)?) => {
        impl<'a> $type<'a> {
            $(crate::builders::builders! { @$option $(#[$doc])* })+
        }
    };
    (@seeds $(#[$doc:meta])*) => {
        $(#[$doc])*
        pub fn seeds(mut self, count: u64) -> Self {
            self.seeds = count;
            self
        }
    };
    (@phase_check $(#[$doc:meta])*) => {
        $(#[$doc])*
        pub fn phase_check(mut self, phase_check: bool) -> Self {
            self.phase_check = Some(phase_check);
            self
        }

        /// Whether replications have perturbed copies.
        pub(crate) fn checks_phases(&self) -> bool {
            self.phase_check.unwrap_or(self.seeds > 1)
        }
    };
    (@jobs $(#[$doc:meta])*) => {
        $(#[$doc])*
        pub fn jobs(mut self, threads: usize) -> Self {
            self.jobs = threads;
            self
        }
    };
    (@cancel $(#[$doc:meta])*) => {
        $(#[$doc])*
        pub fn cancel(mut self, token: &Cancel) -> Self {
            self.cancel = token.clone();
            self
        }
    };
    (@progress $(#[$doc:meta])*) => {
        $(#[$doc])*
        pub fn progress(mut self, report: impl Fn(Progress) + Send + Sync + 'a) -> Self {
            self.progress = Some(Box::new(report));
            self
        }
    };
    (@folder $(#[$doc:meta])*) => {
        $(#[$doc])*
        pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
            self.folder = Some(folder.into());
            self
        }
    };
    (@kit $(#[$doc:meta])*) => {
        $(#[$doc])*
        pub fn kit(mut self, kit: bool) -> Self {
            self.kit = kit;
            self
        }
    };
    (@cache $(#[$doc:meta])*) => {
        $(#[$doc])*
        pub fn cache(mut self, cache: &Cache, most: u64) -> Self {
            self.cache = Some((cache.clone(), most));
            self
        }
    };
    (@force $(#[$doc:meta])*) => {
        $(#[$doc])*
        pub fn force(mut self, force: bool) -> Self {
            self.force = force;
            self
        }
    };
}

pub(crate) use builders;
