"""The pocket world: a generator of bilingual arithmetic problems with step-by-step solutions."""
