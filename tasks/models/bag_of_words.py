"""Logistic regression on normalised bags of words, kept as word ids."""


from tasks.models import embedding
from tasks.models import variables as variables_lib


class BagOfWordsRegression:
  """One dense layer from word frequencies to tag logits.

  Frequencies are shares of all words of an example, unknown ones included.
  The words of an example stay a padded list of ids; their frequency vector is
  never built. 10 000 words and 500 tags give 5 000 500 parameters.
  """

  uses_dropout = False

  def __init__(self, vocabulary: int, num_tags: int, seed: int):
    """Creates the weights.

    Args:
      vocabulary: int, number of words.
      num_tags: int, number of outputs.
      seed: int, seed of the initial values.
    """
    self.variables = variables_lib.Variables(seed)
    self._kernel = self.variables.add(
        'dense/kernel', [vocabulary, num_tags], variables_lib.glorot_uniform
    )
    self._bias = self.variables.add(
        'dense/bias', [num_tags], variables_lib.zeros
    )
    self.decayed = [self._kernel]

  def __call__(self, x, dropout):
    """Returns logits `[batch, tags]` of word ids + 1 `[batch, length]`.

    Larger ids are unknown words.
    """
    del dropout
    return embedding.mean_of_rows(self._kernel, x) + self._bias
