"""Every task from embedded and from real data."""

import math
import sys

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff
from tensorflow_federated.python.simulation.baselines.emnist import (
  emnist_preprocessing,
)

import tasks
from tasks import cifar_common
from tasks import emnist_autoencoder
from tasks import emnist_character
from tasks import stackoverflow_common
from tasks import synthetic
from tasks.data import noise
from tasks.data import sources
from tff_fedopt.testing import real_data

# Loss per example of the initial weights: ln C, ln 2 per tag; None where the
# data decide.
_INITIAL_LOSS = dict(
    cifar10=math.log(10),
    cifar100=math.log(100),
    emnist_autoencoder=None,
    emnist_character=math.log(62),
    shakespeare=math.log(90),
    stackoverflow_tag=math.log(2),
    stackoverflow_word=None,
)


def _rate(name):
  return dict(
      emnist_autoencoder=0.5,
      shakespeare=0.5,
      stackoverflow_tag=50.0,
      stackoverflow_word=1.0,
  ).get(name, 0.1)


def _train(task, steps=12):
  """Metrics of the first batch before and after a few steps on it."""
  model = task.model_fn()

  @tf.function(input_signature=[model.input_spec])
  def step(batch):
    with tf.GradientTape() as tape:
      loss = model.forward_pass(batch).loss
    for v, g in zip(
        model.trainable_variables,
        tape.gradient(loss, model.trainable_variables),
    ):
      v.assign_sub(_rate(task.name) * g)

  def metrics(batch):
    model.reset_metrics()
    output = model.forward_pass(batch, training=False)
    assert np.isfinite(output.loss)
    finalizers = model.metric_finalizers()
    return {
        k: float(finalizers[k](v))
        for k, v in model.report_local_unfinalized_metrics().items()
    }

  client = task.train.client_ids[0]
  batch = next(iter(task.train.dataset_for_client(client, 3)))
  assert list(batch) == ['x', 'y']
  tf.nest.map_structure(
      lambda spec, value: spec.is_compatible_with(value) or pytest.fail(
          f'{value} is not {spec}'
      ),
      dict(model.input_spec),
      dict(batch),
  )
  before = metrics(batch)
  for _ in range(steps):
    step(batch)
  return before, metrics(batch)


def _check(task):
  before, after = _train(task)
  assert task.metric.name in before
  expected = _INITIAL_LOSS[task.name]
  if task.name == 'stackoverflow_word':
    expected = math.log(task.summary()['options']['vocab_size'] + 4)
  if expected is not None:
    assert before['loss'] == pytest.approx(expected, rel=0.06)
  assert after['loss'] < before['loss'] * 0.99
  if task.name in ('shakespeare', 'stackoverflow_word'):
    assert task.weighting == 'tokens'
    assert before['num_tokens'] > 0
  batch = next(iter(task.validation()))
  model = task.model_fn()
  model.forward_pass(batch, training=False)
  assert task.validation() is task.validation()


class TestEmbedded:

  @pytest.fixture(scope='class', params=tasks.PUBLISHED)
  def task(self, request):
    return tasks.load(request.param, seed=5)

  def test_learns(self, task):
    assert task.data_kind == 'synthetic'
    _check(task)

  def test_same_seed_same_weights_and_batches(self, task):
    again = tasks.load(task.name, seed=5)
    other = tasks.load(task.name, seed=6)
    weights = [t.model_fn().trainable_variables for t in (task, again, other)]
    for a, b in zip(*weights[:2]):
      np.testing.assert_array_equal(a, b)
    assert any(not np.array_equal(a, b) for a, b in zip(*weights[1:]))
    client = task.train.client_ids[1]
    one, same, different = (
        [tf.nest.flatten(b)[0].numpy() for b in t.dataset_for_client(client, s)]
        for t, s in ((task.train, 1), (again.train, 1), (again.train, 2))
    )
    for a, b in zip(one, same, strict=True):
      np.testing.assert_array_equal(a, b)
    assert any(
        a.shape != b.shape or not np.array_equal(a, b)
        for a, b in zip(one, different)
    )

  def test_summary_tells_tasks_apart(self, task):
    summary = task.summary()
    assert summary == tasks.load(task.name, seed=5).summary()
    assert summary != tasks.load(task.name, batch_size=3).summary()
    assert summary['parameters'] == task.num_parameters
    assert task.num_parameters < task.published.parameters

  def test_batch_size_and_epochs(self, task):
    changed = tasks.load(task.name, batch_size=7, local_epochs=2)
    client = task.train.client_ids[0]
    sizes = [
        [len(tf.nest.flatten(b)[0]) for b in t.dataset_for_client(client, 0)]
        for t in (task.train, changed.train)
    ]
    assert max(sizes[1]) == 7
    assert sum(sizes[1]) == 2 * sum(sizes[0])
    assert sizes[0][0] <= task.published.batch_size


class TestRealData:

  @pytest.mark.parametrize('name', tasks.PUBLISHED)
  def test_learns(self, name):
    data_dir = real_data.directory(tasks.info(name).dataset)
    task = tasks.load(name, profile='quick', data_dir=data_dir)
    assert task.data_kind in ('subset', 'canonical')
    _check(task)

  @pytest.mark.parametrize('name', tasks.PUBLISHED)
  def test_published_model(self, name):
    data_dir = real_data.directory(tasks.info(name).dataset)
    task = tasks.load(name, profile='small', data_dir=data_dir)
    assert task.num_parameters == task.published.parameters
    if task.data_kind == 'canonical':
      counts = task.summary()['data']['counts']
      assert tuple(counts['train']) == (
          task.published.clients, task.published.examples
      )
      assert counts['test'][1] == task.published.test_examples

  def test_initial_loss_of_published_resnet(self):
    data_dir = real_data.directory('cifar100')
    task = tasks.load('cifar100', profile='small', data_dir=data_dir)
    model = task.model_fn()
    batch = next(iter(task.train.create_tf_dataset_for_client('0')))
    loss = model.forward_pass(batch, training=False).loss
    assert float(loss) == pytest.approx(math.log(100), rel=0.03)


class TestPublishedSettings:

  @pytest.mark.parametrize('name', tasks.PUBLISHED)
  def test_counts_are_those_of_the_loaders(self, name):
    settings = tasks.info(name).published
    if name == 'cifar10':
      assert settings.clients * 100 == settings.examples == 50_000
      return
    published = sources.DATASETS[tasks.info(name).dataset].published
    assert published['train'] == (settings.clients, settings.examples)
    assert published['test'] == (settings.test_clients, settings.test_examples)

  def test_lengths(self):
    shape = {
        name: (s.rounds, s.cohort_size, s.batch_size, s.local_epochs)
        for name in tasks.PUBLISHED
        for s in [tasks.info(name).published]
    }
    assert shape == dict(
        cifar10=(4000, 10, 20, 1),
        cifar100=(4000, 10, 20, 1),
        emnist_autoencoder=(3000, 10, 20, 1),
        emnist_character=(1500, 10, 20, 1),
        shakespeare=(1200, 10, 4, 1),
        stackoverflow_tag=(1500, 10, 100, 1),
        stackoverflow_word=(1500, 50, 16, 1),
    )

  def test_defaults_of_disputed_points(self):
    default = {
        name: {k: o.default for k, o in tasks.info(name).options.items()}
        for name in tasks.PUBLISHED
    }
    for name in ('cifar10', 'cifar100'):
      assert default[name]['groups'] == 2
      assert default[name]['crop'] == 'batch'
      assert default[name]['weight_decay'] == 1e-4
    assert default['emnist_autoencoder']['reduction'] == 'sum'
    for name in ('emnist_autoencoder', 'stackoverflow_word'):
      assert default[name]['initializer'] == 'glorot_uniform'
    for name in ('stackoverflow_word', 'stackoverflow_tag'):
      assert default[name]['max_examples'] == 1000
      assert default[name]['validation_examples'] == 10_000
    metric = tasks.info('stackoverflow_word').metric
    assert metric.name == 'accuracy_no_oov_or_eos'
    assert tasks.info('emnist_autoencoder').metric.scale == 1000
    assert not tasks.info('emnist_autoencoder').metric.higher_is_better

  def test_info_needs_no_tensorflow(self, processes):
    code = (
        'import sys, tasks\n'
        'for name in tasks.PUBLISHED: tasks.info(name).resolve("quick", {})\n'
        'assert "tensorflow" not in sys.modules, "tensorflow was loaded"'
    )
    result = processes.run([sys.executable, '-c', code], seconds=60)
    assert result.returncode == 0, result.stderr


class TestRefusals:

  @pytest.mark.parametrize(
      'name, arguments, message',
      [
          ('mnist', {}, 'mnist'),
          ('cifar10', dict(profile='huge'), "unknown profile 'huge'"),
          ('cifar10', dict(batch_size=0), 'batch_size: 0'),
          ('cifar10', dict(bowling=1), "unknown option 'bowling' of cifar10"),
          ('cifar10', dict(groups=0), 'groups: 0; must be a whole number'),
          ('cifar10', dict(groups=1.5), 'groups: 1.5; must be a whole number'),
          ('cifar10', dict(alpha='x'), "alpha: 'x'; must be a number"),
          ('cifar10', dict(partition='fair'), "'fair'; one of hsu"),
          ('cifar100', dict(partition='pachinko'), 'needs --data_dir'),
          ('cifar100', dict(groups=3), '8 channels do not divide into 3'),
          ('cifar100', dict(client_noise=0.1), 'client_noise: there is none'),
          ('cifar10', dict(client_noise=-0.1), 'client_noise: -0.1; must be'),
          ('cifar10', dict(network='vgg11'), 'use images=padded32'),
          ('shakespeare', dict(pooled=2), 'pooled: 2; one of'),
      ],
  )
  def test_one_clear_line(self, name, arguments, message):
    with pytest.raises(ValueError, match=message) as e:
      tasks.load(name, **arguments).num_parameters
    assert '\n' not in str(e.value)

  def test_whole_floats_are_whole(self):
    info = tasks.info('cifar10')
    values = info.resolve('small', dict(alpha=1, clients=7.0, pooled=True))
    assert values['alpha'] == 1.0 and isinstance(values['alpha'], float)
    assert values['clients'] == 7 and isinstance(values['clients'], int)


def test_emnist_equals_tff():
  pixels = np.random.default_rng(0).random((5, 28, 28), np.float32)
  examples = dict(pixels=pixels, label=np.arange(5, dtype=np.int32))
  spec = tff.simulation.baselines.ClientSpec(
      num_epochs=1, batch_size=5, shuffle_buffer_size=1
  )
  for task, prepare in dict(
      character_recognition=emnist_character.prepare,
      autoencoder=emnist_autoencoder.prepare,
  ).items():
    preprocess = emnist_preprocessing.create_preprocess_fn(spec, task)
    ((x, y),) = preprocess(tf.data.Dataset.from_tensor_slices(examples))
    ours = prepare(examples)
    np.testing.assert_array_equal(ours[0], x)
    np.testing.assert_array_equal(ours[1], y)


@pytest.mark.parametrize(
    'name',
    [
        'emnist_autoencoder',
        'emnist_character',
        'shakespeare',
        'stackoverflow_tag',
        'stackoverflow_word',
    ],
)
def test_kernels_begin_as_in_the_first_public_state_of_the_code(name):
  """Keras' defaults: uniform within √(6 / (fan-in + fan-out))."""
  weights = {
      v.name: v.numpy() for v in tasks.load(name).model_fn().trainable_variables
  }
  kernels = {
      n: w
      for n, w in weights.items()
      if 'kernel' in n and 'recurrent' not in n
  }
  assert kernels
  for which, w in kernels.items():
    field = math.prod(w.shape[:-2])
    fan_in, fan_out = field * w.shape[-2], field * w.shape[-1]
    limit = math.sqrt(6 / (fan_in + fan_out))
    if name == 'shakespeare' and 'lstm' in which:
      # he_normal is named in that state, too: cut off at two deviations.
      limit = 2 * math.sqrt(2 / fan_in) / 0.8796
    assert 0.9 * limit < np.abs(w).max() <= limit * 1.001, which
    share = 1 / math.sqrt(3) if 'he' not in which else 0
    if name != 'shakespeare' or 'lstm' not in which:
      assert np.std(w) / limit == pytest.approx(share, rel=0.1), which


def test_emnist_background_is_one():
  task = tasks.load('emnist_character')
  x = next(iter(task.validation()))['x'].numpy()
  assert x.min() >= 0 and x.max() == 1 and np.median(x) > 0.99


class TestStackOverflow:

  def test_validation_is_of_test_clients_in_random_order(self):
    task, other = (
        tasks.load(
            'stackoverflow_word', validation_examples=150, validation_seed=s
        )
        for s in (0, 1)
    )
    rows, others, whole = (
        np.concatenate([b['x'].numpy() for b in batches])
        for batches in (task.validation(), other.validation(), task.test())
    )
    assert len(rows) == len(others) == 150
    # Where clients begin among all examples, which are stored by client.
    opened = sources.open_clients(
        'stackoverflow', synthetic.ensure('stackoverflow')
    )
    sizes = opened.sizes('test')
    order = np.random.default_rng(0).permutation(len(sizes))
    begins = np.cumsum(sizes) - sizes
    wanted = np.concatenate(
        [np.arange(begins[k], begins[k] + sizes[k]) for k in order]
    )[:150]
    np.testing.assert_array_equal(rows, whole[wanted])
    assert not np.array_equal(rows, whole[:150])
    assert not np.array_equal(rows, others)
    # It is known of a run which they were.
    assert task.summary()['options']['validation_seed'] == 0
    counts = task.summary()['data']['counts']
    assert len(whole) == counts['test'][1]  # The held-out users are not read.

  def test_limit_takes_the_first_examples_before_shuffling(self):
    full, cut = (
        tasks.load('stackoverflow_word', max_examples=n) for n in (1000, 5)
    )
    client = max(full.train.client_ids, key=full.train.num_examples)
    stored = full.train.examples(client)['rows'][:5, :-1]
    x = np.concatenate(
        [b['x'].numpy() for b in cut.train.dataset_for_client(client, 0)]
    )
    order = lambda rows: sorted(map(tuple, rows))
    assert order(x) == order(stored)
    assert stackoverflow_common.shuffle_buffer(20_000) == 10_000

  def test_words_stay_ids(self):
    task = tasks.load('stackoverflow_tag')
    x, y = next(
        iter(task.train.dataset_for_client(task.train.client_ids[0], 0))
    ).values()
    assert x.dtype == y.dtype == tf.int32
    assert x.shape[1] < 100 and y.shape[1] <= 5


def test_pooled_is_one_client():
  task = tasks.load('emnist_character', pooled=True)
  assert list(task.train.client_ids) == ['pooled']
  batch = next(iter(task.train.dataset_for_client('pooled', 0)))
  assert batch['x'].shape == (20, 28, 28, 1)


def test_crops_of_a_batch_share_their_corner():
  """Both kinds of crop, told apart on an image that is the same everywhere."""
  per_batch, per_image, none = (
      tasks.load('cifar100', crop=crop) for crop in ('batch', 'image', 'none')
  )
  image = np.arange(32 * 32 * 3).reshape(1, 32, 32, 3) % 251
  examples = dict(
      image=np.repeat(image.astype(np.uint8), 20, axis=0),
      label=np.zeros(20, np.int64),
  )

  def distinct(task):
    prepare = task.train._prepare  # pylint: disable=protected-access
    x, _ = prepare(examples, np.random.default_rng(0))
    return len(np.unique(x.reshape(20, -1), axis=0))

  assert distinct(none) == 1
  assert distinct(per_batch) == 2  # One corner, mirrored or not.
  assert distinct(per_image) > 10


def test_noises_of_fedinit_by_option():
  options = dict(client_noise=0.1, class_noise=0.05, partition_seed=3)
  assert cifar_common.noise(options) == noise.Noise(
      client=0.1, classes=0.05, seed=3
  )


@pytest.mark.parametrize('name', ['cifar10', 'cifar100'])
@pytest.mark.parametrize('network', ['resnet18_strided', 'vgg11'])
def test_settings_of_fedinit(name, network):
  task = tasks.load(
      name,
      partition='flsim',
      alpha=0.6,
      clients=100,
      images='padded32',
      network=network,
      weight_decay=0,
      client_noise=0.1,
      class_noise=0.05,
      batch_size=10,
      local_epochs=5,
  )
  examples = dict(cifar10=50, cifar100=100)[name]
  counts = task.summary()['data']['counts']['train']
  assert counts == [100, 100 * examples]
  assert task.data_kind == 'synthetic'
  client = task.train.client_ids[3]
  batches = list(task.train.dataset_for_client(client, 0))
  assert len(batches) == 5 * examples // 10
  batch = next(iter(task.validation()))
  assert batch['x'].shape[1:] == (32, 32, 3)
  # Each set by its own channels: back to whole numbers of 0 to 255.
  mean, std = dict(
      cifar10=((0.491, 0.482, 0.447), (0.247, 0.243, 0.262)),
      cifar100=((0.5071, 0.4867, 0.4408), (0.2675, 0.2565, 0.2761)),
  )[name]
  pixels = 255 * (batch['x'] * np.array(std) + mean)
  np.testing.assert_allclose(pixels, np.round(pixels), atol=1e-3)
  grey = dict(
      image=np.full([20, 32, 32, 3], 200, np.uint8), label=np.zeros(20)
  )
  prepare = task.train._prepare  # pylint: disable=protected-access
  x, _ = prepare(grey, np.random.default_rng(0))
  # What moves in is 0 after normalising.
  there = np.any(x != 0, axis=-1)
  assert 0.8 < there.mean() < 1
  np.testing.assert_allclose(
      x[there], np.tile((200 / 255 - np.array(mean)) / std, [there.sum(), 1]),
      atol=1e-5,
  )
  model = task.model_fn()
  loss = model.forward_pass(batch, training=False).loss
  # Not normalised in the end, a network's first outputs are not near 0.
  assert float(loss) == pytest.approx(math.log(dict(
      cifar10=10, cifar100=100
  )[name]), rel=0.3)
