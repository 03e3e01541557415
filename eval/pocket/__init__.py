"""The pocket world: a generator of bilingual arithmetic problems with step-by-step solutions."""

# Part of the keys of all that is made from the problems: to be replaced by any other text when a
# problem, a solution or a simulated mistake changes.
GENERATOR_VERSION = "5ba8540d13d90bb6023a960458ea6c2efde7b64bd6cc856291223320681e14fb"
