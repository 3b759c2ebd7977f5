"""How uploads are brought together at the server."""

import collections

import tensorflow_federated as tff


def build_aggregator(
    update_type: tff.Type,
    weight_type: tff.Type,
    factory: tff.aggregators.WeightedAggregationFactory | None = None,
) -> tff.templates.AggregationProcess:
  """Averages what clients upload under `mean` and adds up their `total`.

  ```
  mean  = Σ_i w_i u_i / Σ_i w_i      (0 if all weights are 0)
  total = Σ_i u_i
  speakers = Σ_i 1                    clients with anything to say
  ```

  Source: Adaptive Federated Optimization, Δ_t with unequal client sizes.

  Args:
    update_type: Type of an upload: a structure with `mean` and, optionally,
      `total`; see `LocalMethod.upload`.
    weight_type: Type of what is known of a client: `speaks`, 1 or 0, and its
      `weight`; see `LocalMethod.weight`.
    factory: Makes of `mean` something else than the average.

  Returns:
    A weighted `AggregationProcess` with a result named as the upload is, and
    `speakers`.
  """
  factory = factory or tff.aggregators.MeanFactory(no_nan_division=True)
  mean = factory.create(update_type['mean'], weight_type['weight'])
  total = None
  if 'total' in tff.structure.name_list(update_type):
    total = tff.aggregators.SumFactory().create(update_type['total'])

  @tff.federated_computation
  def init_fn():
    states = collections.OrderedDict(mean=mean.initialize())
    if total:
      states['total'] = total.initialize()
    return tff.federated_zip(states)

  @tff.federated_computation(
      init_fn.type_signature.result,
      tff.FederatedType(update_type, tff.CLIENTS),
      tff.FederatedType(weight_type, tff.CLIENTS),
  )
  def next_fn(state, update, weight):
    output = mean.next(state['mean'], update['mean'], weight['weight'])
    states = collections.OrderedDict(mean=output.state)
    results = collections.OrderedDict(mean=output.result)
    if total:
      output = total.next(state['total'], update['total'])
      states['total'], results['total'] = output.state, output.result
    results['speakers'] = tff.federated_sum(weight['speaks'])
    return tff.templates.MeasuredProcessOutput(
        tff.federated_zip(states),
        tff.federated_zip(results),
        tff.federated_value((), tff.SERVER),
    )

  return tff.templates.AggregationProcess(init_fn, next_fn)
