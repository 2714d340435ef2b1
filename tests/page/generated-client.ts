/** The program of a stranger who has generated a client and types from /openapi.json: `clients.test.mjs` compiles and runs it. */

import { getReplays, getReplaysReplayEvents, postCheckLockStrategy, postReplaysReplay, postVoucher, postVoucherOrderSeckillId } from './client';
import { client } from './client/client.gen';
import type { components } from './types';

export async function useService(baseUrl: string) {
  client.setConfig({ baseUrl, throwOnError: true, headers: { accept: 'application/json' } });
  const { data: bought } = await postCheckLockStrategy({ path: { strategy: 'single-update' }, query: { stock_id: 1 } });
  const wanted: components['schemas']['VoucherRequest'] = { title: 'a', stock: 9, begin: '2020-01-01T00:00:00Z', end: '2100-01-01T00:00:00Z' };
  const { data: voucher } = await postVoucher({ body: wanted });
  const { data: order } = await postVoucherOrderSeckillId({ path: { id: voucher!.id }, query: { strategy: 'redis-rlock' }, headers: { 'x-user-id': 1 } });
  const { data: list } = await getReplays();
  const { data: started } = await postReplaysReplay({ path: { replay: '1.1' }, query: { pace: 'fast' } });
  const { stream } = await getReplaysReplayEvents({ path: { replay: started!.id }, sseMaxRetryAttempts: 1 });
  const events = [];
  for await (const event of stream) events.push(event);
  return { bought, order, replays: list!.replays, events };
}
